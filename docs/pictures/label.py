"""Draw the screen of a labeller as label.svg; a browser makes label.png of it. Needs a server: QUERCUS_SERVER."""

import io
from pathlib import Path

from rich.console import Console
from sklearn.datasets import load_wine

from quercus.client import Client, Numeric, Specification
from quercus.view.terminal.queries import prompt_line, query_screen

WIDTH, ANSWERED = 88, 9
WINES = ["Barolo", "Grignolino", "Barbera"]
MEASURED = ["alcohol", "flavanoids", "color_intensity", "proline"]


def main() -> None:
    """Answer some queries, and draw the next."""
    bottles = load_wine(as_frame=True).frame.sample(frac=1, random_state=0)
    attributes = [Numeric(name, cuts=32) for name in MEASURED]
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    with Client() as client:
        client.create_model("wine", Specification(attributes, WINES, budget=40))
        client.push("wine", bottles[MEASURED], ids=[f"bottle-{i}" for i in bottles.index])
        for count, query in enumerate(client.queries("wine", labeller="ann")):
            if count == ANSWERED:
                break
            client.answer(query, WINES[bottles.target[int(query.instance.removeprefix("bottle-"))]])
        for part in query_screen(query, client.get_model("wine"), WIDTH):
            console.print(part)
        console.print(prompt_line(query.classes, WIDTH))
    Path("label.svg").write_text(console.export_svg(title="quercus label wine"))


if __name__ == "__main__":
    main()
