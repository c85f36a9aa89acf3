"""Trees as text, DOT, SVG and ONNX, and overviews of several trees."""
