"""A chart of the accuracy of a model's recent predictions, block by block."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from quercus.client.results import RecentAccuracy
from quercus.specification.shares import percent_text
from quercus.view.models import accuracy_text

WIDTH, HEIGHT = 600, 120
GRID = (0.25, 0.5, 0.75)


def accuracy_picture(recent: RecentAccuracy) -> Markup:
    """Return the picture: a step for each block, with its number of rows as width; a line for all blocks.

    Examples
    --------
    >>> from quercus.client.results import AccuracyBlock
    >>> picture = accuracy_picture(RecentAccuracy((AccuracyBlock(50, 50, 40, 40.0), AccuracyBlock(10, 0, 0, 5.0))))
    >>> 'points="0.0,24.0 500.0,24.0 500.0,60.0 600.0,60.0"' in picture
    True
    """
    corners: list[str] = []
    x = 0.0
    for rows, share in _block_shares(recent):
        y = (1.0 - share) * HEIGHT
        corners += [f"{x:.1f},{y:.1f}", f"{(x := x + rows / recent.rows * WIDTH):.1f},{y:.1f}"]
    grid = "".join(
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for y in ((1.0 - share) * HEIGHT for share in GRID)
    )
    mean = (1.0 - recent.expected) * HEIGHT
    shares = [percent_text(share, 1) for _, share in _block_shares(recent)]
    moved = f": from {shares[0]} in the oldest block to {shares[-1]} in the newest" if len(shares) > 1 else ""
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="curve accuracy" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{accuracy_text(recent)}{moved}">{grid}'
        f'<line class="mean" x1="0" x2="{WIDTH}" y1="{mean:.1f}" y2="{mean:.1f}"/>'
        f'<polyline class="line" points="{" ".join(corners)}"/></svg>'
    )


def block_rows(recent: RecentAccuracy) -> list[tuple[int, int, int, float]]:
    """Return for each block: rows, rows whose label is one class, how many of these were right, and its accuracy."""
    shares = (share for _, share in _block_shares(recent))
    blocks = (block for block in recent.blocks if block.rows)
    return [
        (block.rows, block.precise_rows, block.right, share)
        for block, share in zip(blocks, shares, strict=True)
    ]


def _block_shares(recent: RecentAccuracy) -> Iterator[tuple[int, float]]:
    for block in recent.blocks:
        if block.rows:
            yield block.rows, min(1.0, max(0.0, block.expected / block.rows))
