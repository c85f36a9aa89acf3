"""The page at ``/``: what is here, for people."""

from __future__ import annotations

from string import Template
from typing import Final

from quercus import __version__

_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Quercus</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color-scheme:light dark}
pre{overflow:auto;padding:.7em;border:1px solid}</style>
<h1>Quercus $version</h1>
<p>A server of trees that learn from streams. This port answers calls by HTTP; gRPC has a port of its own.</p>
<pre>curl "$$URL/quercus.v1.ModelService/ListModels" -H 'Content-Type: application/json' -d '{}'</pre>
<p>Where the server asks for a token, add <code>-H "Authorization: Bearer $$QUERCUS_TOKEN"</code>.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: all calls and their messages (OpenAPI 3.1)</li>
<li><a href="/v2">/v2</a>: the Open Inference Protocol, with which clients of Triton and KServe classify</li>
<li><a href="/livez">/livez</a>, <a href="/readyz">/readyz</a>: whether the server is well</li>
<li><a href="/metrics">/metrics</a>: metrics for Prometheus</li>
</ul>
</html>
""")


def index_page() -> str:
    """Return the page."""
    return _PAGE.substitute(version=__version__)
