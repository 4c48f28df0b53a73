"""The service: HTTP routes that parse, call and render."""
