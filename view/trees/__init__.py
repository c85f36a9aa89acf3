"""Trees as DOT, as SVG, and several in an overview; their nodes in words."""
