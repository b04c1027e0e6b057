package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// grpc-go: a unary call for each request over a Unix socket, with the defaults. A body is bytes on both sides: no Protocol Buffers,
// which would cost more.

const grpcName = "grpc-go"

const method = "/bench.Answers/Ask"

func grpcAbout() about {
	a := about{Name: grpcName, Kind: "peer", Copied: true, What: "Go: gRPC on a Unix socket, a unary call for each request; bytes"}
	if build, is := debug.ReadBuildInfo(); is {
		for _, module := range build.Deps {
			if module.Path == "google.golang.org/grpc" {
				a.Version = module.Version[1:]
			}
		}
	}
	return a
}

// grpcCan: a reply is what was sent.
func grpcCan(b burst) bool {
	return b.Test == "call" && b.Mode == "block" && b.Size == 32 && b.Batch <= 1
}

// codec takes bytes as they are.
type codec struct{}

func (codec) Name() string { return "bytes" }

func (codec) Marshal(v any) ([]byte, error) {
	b, is := v.(*[]byte)
	if !is {
		return nil, fmt.Errorf("%T is not bytes", v)
	}
	return *b, nil
}

func (codec) Unmarshal(data []byte, v any) error {
	b, is := v.(*[]byte)
	if !is {
		return fmt.Errorf("%T is not bytes", v)
	}
	*b = append((*b)[:0], data...)
	return nil
}

func path(s setup) string { return s.Directory + "/grpc.sock" }

// serve begins to answer each call with what was sent.
func serve(s setup) error {
	listener, err := net.Listen("unix", path(s))
	if err != nil {
		return err
	}
	answer := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var body []byte
		if err := decode(&body); err != nil {
			return nil, err
		}
		return &body, nil
	}
	server := grpc.NewServer(grpc.ForceServerCodec(codec{}))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "bench.Answers", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: answer}}}, nil)
	go func() { _ = server.Serve(listener) }()
	return nil
}

type client struct{ conn *grpc.ClientConn }

func connect(s setup) (*client, error) {
	conn, err := grpc.NewClient("unix:"+path(s), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.WaitForReady(true)))
	return &client{conn}, err
}

func (c *client) close() { _ = c.conn.Close() }

// cycle: message number n has the words n % cycle and those after it.
const cycle = 4096

var errDamaged = errors.New("the bytes received are not the bytes sent")

// calls makes a call for each message. When did each group of them begin, and the last one end?
func (c *client) calls(b burst) ([]time.Time, error) {
	timed := make([]time.Time, 0, b.Count/b.Group+2)
	request, reply := make([]byte, b.Size), make([]byte, 0, b.Size)
	var sum, expected uint64
	timed = append(timed, time.Now())
	for n := range b.Count {
		for at := 0; at < b.Size; at += 8 {
			word := uint64(n%cycle + at/8)
			binary.LittleEndian.PutUint64(request[at:], word)
			expected += word
		}
		if err := c.conn.Invoke(context.Background(), method, &request, &reply); err != nil {
			return nil, err
		}
		if len(reply) != b.Size {
			return nil, errDamaged
		}
		for at := 0; at < b.Size; at += 8 {
			sum += binary.LittleEndian.Uint64(reply[at:])
		}
		if (n+1)%b.Group == 0 {
			timed = append(timed, time.Now())
		}
	}
	if sum != expected {
		return nil, errDamaged
	}
	return timed, nil
}
