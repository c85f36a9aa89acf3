"""Pictures as SVG text: numbers in, text out, no inline style. Colours come from the style sheet by class."""
