"""The wire: gRPC services and messages, one package a version."""
