"""Query strategies: which label to ask for next. Each is a small module that implements `strategy.Strategy`."""
