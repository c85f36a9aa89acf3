"""MLflow keeps estimators, and serves models of a server. It is a trial of a release: MLflow brings eighty packages.

In an environment with MLflow: python -m pytest -m release tests/integration/client/test_mlflow.py
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.client.serving import Serving
from sklearn.datasets import load_wine

from quercus.client import Client, Numeric, Specification
from quercus.estimators import ActiveForestClassifier, C45Classifier

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install mlflow")
pytestmark = [pytest.mark.release, pytest.mark.filterwarnings("default"), pytest.mark.timeout(400)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", [ActiveForestClassifier, C45Classifier])
def test_an_estimator_comes_back_with_its_predictions(folder: Path, kind: Any) -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    given = kind().fit(X, y)
    mlflow.sklearn.save_model(given, folder / "wine", input_example=X[:3], serialization_format="cloudpickle")
    found = mlflow.sklearn.load_model(str(folder / "wine"))
    assert type(found) is kind
    np.testing.assert_array_equal(found.predict_proba(X), given.predict_proba(X))
    np.testing.assert_array_equal(found.predict_belief(X), given.predict_belief(X))
    served = mlflow.pyfunc.load_model(str(folder / "wine"))
    np.testing.assert_array_equal(served.predict(X), given.predict(X))


def test_a_model_of_a_server_is_a_model_of_mlflow(
    folder: Path, client: Client, name: str, serving: Serving
) -> None:
    class Served(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        """The example of docs/estimators.md."""

        def load_context(self, context: Any) -> None:
            self.client = Client(context.model_config["address"])

        def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
            return self.client.classify(context.model_config["model"], model_input).to_arrow().to_pandas()

    X, y = load_wine(return_X_y=True, as_frame=True)
    wines = ["Barolo", "Grignolino", "Barbera"]
    client.create_model(name, Specification([Numeric(each) for each in X.columns], wines))
    client.push(name, X, [wines[k] for k in y])
    client.wait_grown(name)
    where = {"address": serving.address, "model": name}
    mlflow.pyfunc.save_model(folder / "served", python_model=Served(), model_config=where)
    found = mlflow.pyfunc.load_model(str(folder / "served")).predict(X)
    expected = client.classify(name, X)
    assert found["class"].tolist() == expected.labels
    np.testing.assert_array_equal(found["plausibility:Barbera"], expected.plausibility[:, 2])
