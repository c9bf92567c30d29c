//go:build tools

// Package tools pins the Jaeger of the tests, which is built as the program that it is.
package tools

import _ "github.com/jaegertracing/jaeger/cmd/all-in-one"
