"""The examples in other languages do what their comments say, against a live server."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.checkout import ROOT

from quercus.client import Client
from quercus.client.retrying import service_config

EXAMPLES = ROOT / "examples"


def test_the_published_retry_policy_is_that_of_the_client() -> None:
    assert json.loads((EXAMPLES / "service_config.json").read_text(encoding="utf-8")) == service_config()


@pytest.mark.release
@pytest.mark.timeout(400)
@pytest.mark.skipif(
    shutil.which("npm") is None, reason="needs npm: apt-get install npm (make release-checks)"
)
def test_the_clients_in_typescript_push_label_and_classify(tmp_path: Path) -> None:
    """Packages come from npm's registry. Where it does not answer, nobody knows whether the example works."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("node_modules", "build"))
    folder = tmp_path / "examples" / "typescript"
    npm = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(npm, cwd=folder, check=False, timeout=200).returncode:
        pytest.skip("npm's registry does not answer, so the example in TypeScript is not tried")
    subprocess.run(["npm", "run", "--silent", "build"], cwd=folder, check=True, timeout=100)
    serving = Serving(tmp_path)

    def printed(program: str) -> list[str]:
        environment = {**os.environ, "QUERCUS_SERVER": serving.address}
        done = subprocess.run(
            ["node", f"build/js/{program}.js"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert printed("sensor") == ["20 rows stored, 0 were there already"]
    assert printed("sensor") == ["0 rows stored, 20 were there already"]
    answers = printed("labeller")
    assert len(answers) == 3
    with Client(serving.address) as client:
        assert client.get_model("wine").queries_answered == 3
    said = printed("classifier")
    assert said[0] == "models/wine (active-forest): red, white"
    assert said[1].startswith(("red, by tree version", "white, by tree version"))
    assert [line.split(":")[0] for line in said[2:]] == ["red", "white"]
    assert serving.stop() == 0
