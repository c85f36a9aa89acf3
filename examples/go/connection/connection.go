// Package connection connects to the server that QUERCUS_SERVER names, with the token in QUERCUS_TOKEN.
package connection

import (
	"context"
	"crypto/tls"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// Model is the model that all examples share.
const Model = "models/wine"

// FirstContact is how long Open waits for the server.
const FirstContact = 30 * time.Second

// Open returns a connection, a context for its calls that has the token and ends after a minute, and a function that
// closes both.
func Open() (*grpc.ClientConn, context.Context, func()) {
	server := os.Getenv("QUERCUS_SERVER")
	if server == "" {
		server = "127.0.0.1:50051"
	}
	security := grpc.WithInsecure()
	if strings.HasPrefix(server, "tls://") {
		server = strings.TrimPrefix(server, "tls://")
		security = grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{}))
	}
	// The published retry policy: which calls may be sent again when the server was away.
	policy, err := os.ReadFile("../service_config.json")
	Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	// The address may be wrong, so the first contact has half a minute. From then on, a call that finds no server waits for
	// one until its context ends: without WaitForReady it would fail at once.
	first, stop := context.WithTimeout(ctx, FirstContact)
	defer stop()
	connection, err := grpc.DialContext(first, server, security, grpc.WithBlock(), grpc.WithReturnConnectionError(),
		grpc.WithDefaultServiceConfig(string(policy)), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	Check(err)
	if token := os.Getenv("QUERCUS_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return connection, ctx, func() {
		cancel()
		connection.Close()
	}
}

// Check ends the program if there is an error.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
