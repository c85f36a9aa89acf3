"""The HTTP port: calls as JSON, health, metrics, and their description, behind the same checks as the gRPC port."""
