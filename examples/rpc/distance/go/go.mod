module distance

go 1.23.0

require (
	github.com/ramway/ramway/bindings/go v0.0.0
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/sys v0.35.0 // indirect

replace github.com/ramway/ramway/bindings/go => ../../../../bindings/go
