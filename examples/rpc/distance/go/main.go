// Command distance runs a program of the guide on encodings (docs/guides/rpc-encodings.md), which has `distance` and `ask`: the test
// puts it beside this file.
//
//	distance serve NAME | distance ask NAME X Y
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	ramway "github.com/ramway/ramway/bindings/go"
)

func run(ctx context.Context, what, name string, point []string) error {
	if what == "serve" {
		server, err := ramway.BindServer(name, ramway.ServeOptions{})
		if err != nil {
			return err
		}
		if err := server.HandleNamed("Point.Distance", distance); err != nil {
			return err
		}
		return server.Serve(ctx)
	}
	client, err := ramway.ConnectClient(ctx, name, ramway.ClientOptions{})
	if err != nil {
		return err
	}
	defer client.Close()
	x, err := strconv.ParseFloat(point[0], 64)
	if err != nil {
		return err
	}
	y, err := strconv.ParseFloat(point[1], 64)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, client, x, y)
	if err == nil {
		fmt.Println(answer)
	}
	return err
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}
