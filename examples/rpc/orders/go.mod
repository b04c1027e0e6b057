module github.com/ramway/ramway/examples/rpc/orders

go 1.23.0

require github.com/ramway/ramway/bindings/go v0.0.0

require golang.org/x/sys v0.35.0 // indirect

replace github.com/ramway/ramway/bindings/go => ../../../bindings/go
