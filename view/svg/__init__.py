"""Pictures on the console's pages, as SVG text: numbers in, text out, no inline style.

Colours come from the style sheet, by class. The tree as an SVG file to download is `quercus.view.trees.svg`.
"""
