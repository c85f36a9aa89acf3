"""Draw the diagrams of the documentation, as SVG files beside this one that are light or dark as the page is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

FOLDER = Path(__file__).resolve().parent
LINE_HEIGHT = 17
STYLE = """\
    :root {
      --paper: #ffffff; --ink: #1f2328; --faint: #59636e;
      --fill: #e8f1e4; --edge: #4b7a3a; --other: #eef1f5; --rim: #7b8794;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --paper: #131416; --ink: #e6edf3; --faint: #aab4bf;
        --fill: #22361b; --edge: #86bb72; --other: #262b32; --rim: #8b97a4;
      }
    }
    text { font: 14px system-ui, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; fill: var(--faint); }
    .name { fill: var(--ink); font-weight: 600; text-anchor: middle; }
    .middle { text-anchor: middle; }
    .end { text-anchor: end; }
    .ours { fill: var(--fill); stroke: var(--edge); stroke-width: 1.5; }
    .theirs { fill: var(--other); stroke: var(--rim); stroke-width: 1.5; }
    .arrow { fill: none; stroke: var(--rim); stroke-width: 1.6; marker-end: url(#head); }
    #head path, .dot { fill: var(--rim); }
"""


def box(x: float, y: float, width: float, height: float, *lines: str, ours: bool = True) -> str:
    """A box around its middle; the first line is its name."""
    kind = "ours" if ours else "theirs"
    top = y - (len(lines) - 1) * LINE_HEIGHT / 2 + 5
    place = f'x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}"'
    shape = f'<rect class="{kind}" {place} rx="8"/>'
    return shape + "".join(
        f'<text class="{"middle" if n else "name"}" x="{x:g}" y="{top + n * LINE_HEIGHT:g}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )


def arrow(*points: tuple[float, float]) -> str:
    """A line through points, with a head at its end."""
    return f'<path class="arrow" d="M{" L".join(f"{x:g} {y:g}" for x, y in points)}"/>'


def words(x: float, y: float, *lines: str, side: str = "middle") -> str:
    """Lines of text; `side` says which part of them is at `x`: start, middle or end."""
    return "".join(
        f'<text class="{side}" x="{x:g}" y="{y + n * LINE_HEIGHT:g}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )


def drawn(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Return a diagram as SVG."""
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img">\n  <title>{escape(title)}</title>\n  <style>\n{STYLE}  </style>\n  {head}\n'
        f'  <rect width="{width}" height="{height}" rx="8" style="fill: var(--paper)"/>\n  {body}\n</svg>\n'
    )


def overview() -> str:
    """Show the parties around Quercus, for somebody who sees it first."""
    return drawn(
        660,
        260,
        "Rows go into Quercus, people answer its questions, and any program gets predictions",
        [
            box(80, 60, 130, 56, "Sensors", "and files", ours=False),
            box(300, 130, 150, 150, "Quercus", "a log,", "a forest,", "a tree to read"),
            box(80, 200, 130, 56, "People", "who can label", ours=False),
            box(580, 130, 130, 56, "Your program", ours=False),
            arrow((145, 70), (223, 90)),
            words(190, 66, "rows"),
            arrow((225, 160), (147, 188)),
            words(160, 162, "a question"),
            arrow((145, 212), (223, 184)),
            words(212, 218, "an answer,", "or a doubt"),
            arrow((515, 118), (377, 118)),
            words(446, 108, "a row"),
            arrow((375, 142), (513, 142)),
            words(446, 163, "its class, and how", "much is known"),
        ],
    )


def data_flow() -> str:
    """Show the processes, the store between them, and what passes."""
    return drawn(
        660,
        330,
        "Sensors, labellers and clients talk to the server; server and grower share only the store",
        [
            box(70, 50, 110, 44, "sensor", ours=False),
            box(70, 165, 110, 44, "labeller", ours=False),
            box(70, 280, 110, 44, "client", ours=False),
            box(300, 165, 100, 274, "server"),
            arrow((125, 50), (248, 50)),
            words(187, 42, "push"),
            arrow((250, 153), (127, 153)),
            words(187, 145, "lease"),
            arrow((125, 178), (248, 178)),
            words(187, 198, "answer"),
            arrow((125, 280), (248, 280)),
            words(187, 272, "classify"),
            box(565, 75, 150, 60, "log", "in the store"),
            box(565, 255, 150, 60, "snapshot, agenda", "in the store"),
            box(450, 165, 92, 44, "grower"),
            arrow((350, 65), (488, 65)),
            words(415, 57, "append"),
            arrow((530, 105), (485, 142)),
            words(520, 142, "new evidence", side="start"),
            arrow((485, 188), (530, 223)),
            words(520, 200, "publishes", side="start"),
            arrow((490, 255), (352, 255)),
            words(421, 275, "the newest"),
        ],
    )


def query_states() -> str:
    """Show the states of a query, and what leads from one to the next."""
    return drawn(
        660,
        470,
        "The states of a query: OPEN, LEASED, ANSWERED, REFUSED and WITHDRAWN",
        [
            box(320, 40, 120, 40, "ANSWERED"),
            box(90, 170, 110, 40, "OPEN"),
            box(550, 170, 110, 40, "LEASED"),
            box(320, 310, 120, 40, "REFUSED"),
            box(320, 430, 120, 40, "WITHDRAWN"),
            '<circle class="dot" cx="12" cy="170" r="5"/>',
            arrow((12, 170), (33, 170)),
            words(8, 125, "selected for", "the agenda", side="start"),
            arrow((145, 160), (493, 160)),
            words(320, 152, "lease"),
            arrow((495, 180), (147, 180)),
            words(
                320, 200, "released, skipped, postponed, expired or evicted;", "answered, more answers wanted"
            ),
            '<path class="arrow" d="M535 149 C520 108 580 108 566 148"/>',
            words(551, 108, "heartbeat"),
            arrow((118, 149), (262, 56)),
            words(12, 65, "late answer; or some answers,", "and the budget is spent", side="start"),
            arrow((518, 149), (378, 56)),
            words(455, 84, "answered", side="start"),
            arrow((115, 191), (266, 292)),
            words(168, 258, "late refusal", side="end"),
            arrow((525, 191), (374, 292)),
            words(468, 258, "refused", side="start"),
            arrow((320, 330), (320, 408)),
            words(328, 374, "undone", side="start"),
            arrow((65, 191), (65, 430), (258, 430)),
            words(160, 422, "no longer wanted"),
            arrow((585, 191), (585, 430), (382, 430)),
            words(578, 404, "returned, expired or evicted,", "and no longer wanted", side="end"),
            arrow((380, 36), (645, 36), (645, 445), (382, 445)),
            words(512, 28, "undone"),
        ],
    )


DIAGRAMS: Final[dict[str, Callable[[], str]]] = {
    "overview": overview,
    "data-flow": data_flow,
    "query-states": query_states,
}

if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
