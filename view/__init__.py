"""Models, queries, answers, labels, reasons and trees presented to people: as text, tables and pictures.

``terminal``  with Rich, for the command line
``svg``       pictures on the pages of the console
``trees``     trees as text, DOT, SVG and ONNX
``plots``     pictures in Matplotlib
"""

if __name__ != "quercus.view":  # under another name every class would exist twice
    raise ImportError(f"import quercus.view, not {__name__}")
