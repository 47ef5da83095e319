// Package gen holds generated code only: that of the protocols in api/proto.
package gen

//go:generate go run generate.go
