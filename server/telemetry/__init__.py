"""What a running server tells its operator: logs, metrics, traces."""
