"""What a call passes before it is served: who calls, how much, how large; and what is recorded of it."""
