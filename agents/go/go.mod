module github.com/ramway/ramway/conformance/programs/go

go 1.23.0

require (
	github.com/ramway/ramway/bindings/go v0.0.0
	golang.org/x/sys v0.35.0
)

replace github.com/ramway/ramway/bindings/go => ../../bindings/go
