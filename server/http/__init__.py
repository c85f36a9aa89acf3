"""The HTTP port: calls as JSON, health, metrics, and what describes them; behind the same gate as gRPC's."""
