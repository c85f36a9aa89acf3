"""Exit code 0 while the server can read its store; asks the metrics, which need neither token nor certificate."""

import os
import sys
import urllib.request

port = os.environ.get("QUERCUS_METRICS_PORT", "9464")
with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=4) as page:
    lines = page.read().decode().splitlines()
sys.exit(0 if "quercus_store_up 1.0" in lines else 1)
