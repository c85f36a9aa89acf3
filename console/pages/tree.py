"""The page of a tree: an icicle and a list of its nodes, every version, and the newest as it grows.

The page has its own, shorter words for nodes than `quercus.view.trees.words`: a box of the icicle has room only for the
test that leads to the node, and the panel beside it has the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from quercus.client.errors import QuercusError
from quercus.client.plugins import asks_with_forest
from quercus.client.results import Model, Tree
from quercus.client.tree_nodes import TreeNode
from quercus.client.treeview import RenderFormat
from quercus.console.sessions import Session
from quercus.console.web import render_fragment, render_page, session_of
from quercus.specification.attributes import plain_number
from quercus.specification.conditions import condition_of, path_text
from quercus.specification.shares import percent_text
from quercus.view.models import nominal_names
from quercus.view.svg.classes import mark_name
from quercus.view.svg.icicle import Box, Cell, draw_icicle
from quercus.view.svg.intervals import interval_bars, share_bars
from quercus.view.words import counted

PING_S = 15.0
MAX_STREAMS = 4
LISTED_VERSIONS = 1_000
MAX_NODES = 20_000
UNFOLDED_NODES = 60
"""Maximum number of nodes of a tree that is listed completely."""
OPEN_DEPTH = 4
MOST_LISTED = 250
"""Number of nodes of a larger tree that are listed at first; the others appear when the user opens a node above
them."""
MOST_FOUND = 50
"""Maximum number of nodes that a search lists."""
MAX_FIND = 200
DRAWINGS: dict[str, tuple[RenderFormat, str]] = {
    "svg": ("svg", "image/svg+xml"),
    "txt": ("text", "text/plain; charset=utf-8"),
    "dot": ("dot", "text/vnd.graphviz; charset=utf-8"),
}
STOPS = {
    "pure": "its rows are of one class, as far as the labels say",
    "no_attribute": "no attribute is left to split by",
    "few_instances": "it has too few rows to split",
    "max_depth": "it is as deep as the model allows",
    "no_gain": "no split would separate the classes better",
    "pruned": "the tree below it was pruned",
    "not_significant": "no split separates the classes better than by chance",
}


async def tree(request: Request) -> Response:
    """Show a version of the tree."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    if not model.tree_version:
        return render_page(request, "tree.html", model=name, tab="tree", tree=None, info=model)
    shown = await _fetch_tree(
        session, name, _integer_parameter(request, "version"), _integer_parameter(request, "member") or 0
    )
    selected = _selected_node(shown, _integer_parameter(request, "node"))
    top = _selected_node(shown, _integer_parameter(request, "zoom"))
    if top not in _ancestors(shown, selected):  # the chosen node must be in the picture
        top = shown.root
    context = _page_context(shown, model, selected, top) | _found_context(
        shown, model, _find_parameter(request)
    )
    if request.query_params.get("part"):
        return HTMLResponse(render_fragment("tree_view.html", **context))
    return render_page(request, "tree.html", tab="tree", **context)


async def node(request: Request) -> Response:
    """Return the panel of one node, for a script."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    shown = await _fetch_tree(
        session, name, _integer_parameter(request, "version"), _integer_parameter(request, "member") or 0
    )
    selected = _selected_node(shown, _integer_parameter(request, "node"))
    return HTMLResponse(
        render_fragment(
            "tree_node.html", panel=_node_panel(shown, selected, nominal_names(model)), base=f"/m/{name}/tree"
        )
    )


async def find(request: Request) -> Response:
    """Return the nodes that match a text, for a script."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    shown = await _fetch_tree(
        session, name, _integer_parameter(request, "version"), _integer_parameter(request, "member") or 0
    )
    context = _list_context(shown, model, (), frozenset()) | _found_context(
        shown, model, _find_parameter(request)
    )
    return HTMLResponse(render_fragment("tree_found.html", **context))


async def children(request: Request) -> Response:
    """Return the children of a node, for a script that opens it."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    shown = await _fetch_tree(
        session, name, _integer_parameter(request, "version"), _integer_parameter(request, "member") or 0
    )
    below = _selected_node(shown, _integer_parameter(request, "node")).children
    context = _list_context(shown, model, below, opened=frozenset())
    return HTMLResponse(render_fragment("tree_items.html", selected=-1, **context))


async def drawing(request: Request) -> Response:
    """Return a drawing of the tree as a file."""
    session = session_of(request)
    name, kind = request.path_params["model"], request.path_params["kind"]
    if kind not in DRAWINGS:
        raise HTTPException(404)
    form, media_type = DRAWINGS[kind]
    version = _integer_parameter(request, "version")
    text = await session.client.render(name, form, version, _integer_parameter(request, "member"))
    headers = {"Content-Disposition": f'attachment; filename="{name}-{version or "latest"}.{kind}"'}
    return Response(text, media_type=media_type, headers=headers)


async def events(request: Request) -> Response:
    """Report each new tree to a script, as server-sent events."""
    session = session_of(request)
    name = request.path_params["model"]
    if session.streams >= MAX_STREAMS:
        raise HTTPException(429, f"{MAX_STREAMS} pages of this session are already watching trees")
    await session.client.get_model(name)
    return StreamingResponse(_tree_events(session, name), media_type="text/event-stream")


async def _tree_events(session: Session, name: str) -> AsyncIterator[str]:
    session.streams += 1
    queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=8)

    async def pump() -> None:
        try:
            async with aclosing(session.client.watch_versions(name)) as updates:
                async for update in updates:
                    report = {"version": update.version, "as_of": update.as_of, "lag": update.lag}
                    await queue.put(f"event: tree\ndata: {json.dumps(report)}\n\n")
        except (QuercusError, ValueError):  # the page reconnects, and gets the reason if that fails
            pass
        await queue.put(None)

    task = asyncio.create_task(pump(), name="console-events")
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), PING_S)
            except TimeoutError:
                event = ": still here\n\n"
            if event is None:
                return
            yield event
    finally:
        session.streams -= 1
        task.cancel()


async def _fetch_tree(session: Session, name: str, version: int | None, member: int) -> Tree:
    """Return a tree; the session caches its last one, since versions do not change."""
    key = (name, version, member)
    if version is not None and session.tree is not None and session.tree[0] == key:
        return session.tree[1]
    shown = await session.client.tree(name, version, member)
    if len(shown.nodes) > MAX_NODES:
        reason = f"the tree has {len(shown.nodes):,} nodes, a page shows at most {MAX_NODES:,}; use quercus tree {name}"
        raise HTTPException(413, reason)
    session.tree = ((name, shown.version, member), shown)
    return shown


def _page_context(tree: Tree, model: Model, selected: TreeNode, top: TreeNode) -> dict[str, Any]:
    """Return the context of the page: the list of all nodes, and the picture of those below one."""
    nominal = nominal_names(model)
    opened = opened_nodes(tree, selected)
    listed = [node.index for node in tree.nodes if node.parent is None]
    for node in tree.nodes:  # in pre-order: parents come first
        listed += node.children if node.index in opened else ()
    context = _list_context(tree, model, sorted(listed), opened)
    below = {top.index}
    for node in tree.nodes[top.index :]:
        if node.index in below:
            below.update(node.children)
    cells = [
        Cell(each.index, each.parent, max(each.weight, 1e-9), each.depth)
        for each in tree.nodes
        if each.index in below
    ]
    href = f"{context['base']}?{context['query']}&zoom={top.index}&node="
    return context | {
        "zoom": top.index,
        "way": [(each.index, _branch_text(tree, each, nominal)) for each in _ancestors(tree, top)],
        "shown_nodes": len(cells),
        "model": model.name,
        "info": model,
        "of_forest": asks_with_forest(model.specification.learner),
        "picture": draw_icicle(
            cells, lambda k: _node_box(tree, tree.nodes[k], nominal), lambda k: f"{href}{k}", selected.index
        ),
        "selected": selected.index,
        "panel": _node_panel(tree, selected, nominal),
        "oldest": max(1, model.tree_version - LISTED_VERSIONS + 1),
        "newest": max(model.tree_version, tree.version),
        "legend": tree.node_classes,
        "leaves": len(tree.leaves),
        "undecided": len(tree.undecided),
    }


def opened_nodes(tree: Tree, selected: TreeNode) -> frozenset[int]:
    """Return the nodes whose children are listed at first: in a large tree, the upper ones and the path to one."""
    if len(tree.nodes) <= UNFOLDED_NODES:
        return frozenset(node.index for node in tree.nodes)
    opened, listed, queue = set[int](), 1, deque([tree.root])
    while queue and queue[0].depth < OPEN_DEPTH:
        node = queue.popleft()
        listed += len(node.children)
        if listed <= MOST_LISTED:
            opened.add(node.index)
            queue.extend(tree.nodes[k] for k in node.children)
    ancestor: int | None = selected.index
    while ancestor is not None:
        opened.add(ancestor)
        ancestor = tree.nodes[ancestor].parent
    return frozenset(opened)


def _list_context(tree: Tree, model: Model, listed: Sequence[int], opened: frozenset[int]) -> dict[str, Any]:
    """Return the context of the list of nodes."""
    nominal = nominal_names(model)
    return {
        "tree": tree,
        "base": f"/m/{model.name}/tree",
        "query": f"version={tree.version}" + (f"&member={tree.member}" if tree.member else ""),
        "items": [(tree.nodes[k], _node_box(tree, tree.nodes[k], nominal)) for k in listed],
        "opened": opened,
    }


def _node_box(tree: Tree, node: TreeNode, nominal: frozenset[str]) -> Box:
    place = _branch_text(tree, node, nominal)
    title = f"{place}: {counted(node.count, 'row')}, {node.class_name} {percent_text(max(node.theta))}"
    return Box(
        place if node.parent is not None else f"all rows · {node.class_name}",
        title + ("; undecided" if node.undecided else ""),
        mark_name(node.class_name, tree.classes),
        node.undecided,
    )


def _branch_text(tree: Tree, node: TreeNode, nominal: frozenset[str]) -> str:
    """Return the test that leads to a node, in words."""
    if node.parent is None:
        return "all rows"
    attribute = tree.nodes[node.parent].attribute or ""
    return condition_of(attribute, node.branch or "", is_nominal=attribute in nominal).text


def _ancestors(tree: Tree, node: TreeNode) -> list[TreeNode]:
    """Return the nodes from the root to a node, inclusive."""
    way = [node]
    while (parent := way[-1].parent) is not None:
        way.append(tree.nodes[parent])
    return way[::-1]


def _found_context(tree: Tree, model: Model, text: str) -> dict[str, Any]:
    """Return the nodes whose test, class or state contains every word of a text, by number of rows."""
    words, nominal = text.casefold().split(), nominal_names(model)
    found = []
    if words:
        for node in tree.nodes:
            said = f"{_branch_text(tree, node, nominal)} {node.class_name}{' undecided' if node.undecided else ''}"
            if all(word in said.casefold() for word in words):
                found.append(node)
    found.sort(key=lambda node: (-node.count, node.index))
    shown = [
        (node, path_text(tree.path(node), nominal) or "all rows", mark_name(node.class_name, tree.classes))
        for node in found[:MOST_FOUND]
    ]
    return {"find": text, "found": shown, "found_count": len(found)}


def _find_parameter(request: Request) -> str:
    text = request.query_params.get("find", "").strip()
    if len(text) > MAX_FIND:
        raise HTTPException(400, f"find has {len(text)} characters, at most {MAX_FIND} are allowed")
    return text


def _node_panel(tree: Tree, node: TreeNode, nominal: frozenset[str]) -> dict[str, Any]:
    """Return the description of one node."""
    intervals = sorted(node.intervals.items(), key=lambda each: -(each[1][0] + each[1][1]))
    return {
        "node": node,
        "classes": tree.classes,
        "where": path_text(tree.path(node), nominal),
        "title": _branch_text(tree, node, nominal),
        "way": [(each.index, _branch_text(tree, each, nominal)) for each in _ancestors(tree, node)[:-1]],
        "query": f"version={tree.version}" + (f"&member={tree.member}" if tree.member else ""),
        "below": len(node.children),
        "believed": share_bars(tree.node_classes, node.theta, node.belief, node.plausibility),
        "intervals": interval_bars([(name, lower, upper) for name, (lower, upper) in intervals[:12]]),
        "more": max(0, len(intervals) - 12),
        "test": None if node.attribute is None else _test_text(node),
        "stop": STOPS.get(node.stop or "", ""),
    }


def _test_text(node: TreeNode) -> str:
    attribute = node.attribute or ""
    return attribute if node.threshold is None else f"{attribute} at {plain_number(node.threshold)}"


def _selected_node(tree: Tree, number: int | None) -> TreeNode:
    return tree.nodes[number] if number is not None and number < len(tree.nodes) else tree.root


def _integer_parameter(request: Request, name: str) -> int | None:
    """Return an integer parameter of the URL; None if it is missing."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise HTTPException(400, f"{name} is {text[:40]!r}, must be a whole number")
    return int(text)
