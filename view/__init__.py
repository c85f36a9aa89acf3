"""Models, queries, answers, labels, reasons and trees for people: words, tables and pictures.

``terminal``  with Rich, for the command line
``svg``       pictures on the pages of the console
``trees``     trees as text, DOT and SVG, their nodes in words
``plots``     pictures for Matplotlib
"""

if __name__ != "quercus.view":  # by another name every class would exist twice
    raise ImportError(f"import quercus.view, not {__name__}")
