"""Trees as DOT, SVG and ONNX, and several in an overview; their nodes in words."""
