"""Figures of the code itself: modules, functions, names, import circles, citations of the theory.

``python bench/house.py [CHECKOUT ...]`` prints a table with one column per checkout (without arguments: this one).
``--list`` also names what stands behind the figures of the last checkout.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

LONG_FUNCTION, LONG_MODULE = 60, 400
ASIDE = {"tests", "bench", "src", "docs", "build"}
"""Top-level folders that hold no production code of their own (``src`` holds links to the others)."""
CITATION = re.compile(r"(?:theory|ALGORITHMS|DESIGN),? (§\d[\d.]*(?:(?:, | and |-)§?\d[\d.]*)*)")
CIRCLES = """
import grimp, json
graph = grimp.build_graph("quercus", exclude_type_checking_imports=True)
print(json.dumps({m: sorted(graph.find_modules_directly_imported_by(m)) for m in graph.modules}))
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class House:
    """The production code of a checkout.

    Parameters
    ----------
    root
        Its top folder.
    """

    root: Path

    @cached_property
    def files(self) -> list[Path]:
        """Its Python files, without generated ones."""
        command = ["git", "ls-files", "*.py"]
        listed = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout
        found = [Path(line) for line in listed.split()]
        return [
            file
            for file in found
            if file.parts[0] not in ASIDE and (self.root / file).is_file() and not self._is_generated(file)
        ]

    def _is_generated(self, file: Path) -> bool:
        return "_pb2" in file.name or (self.root / file).read_text().startswith("# Generated from ")

    @cached_property
    def lines(self) -> dict[str, int]:
        """Number of lines of each module."""
        return {str(file): len((self.root / file).read_text().splitlines()) for file in self.files}

    def _nodes(self) -> Iterator[tuple[Path, ast.AST]]:
        for file in self.files:
            for node in ast.walk(ast.parse((self.root / file).read_text())):
                yield file, node

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function and method, with the file it stands in."""
        return [(str(file), node) for file, node in self._nodes() if isinstance(node, Function)]

    @cached_property
    def long_functions(self) -> dict[str, int]:
        """Functions whose body, without the docstring, has more than 60 lines."""
        lengths = {f"{file}:{node.name}": _body_lines(node) for file, node in self.functions}
        return {name: length for name, length in lengths.items() if length > LONG_FUNCTION}

    @cached_property
    def one_word(self) -> float:
        """Share of function names that are one word; dunder methods do not count."""
        names = [node.name.strip("_") for _, node in self.functions if not node.name.startswith("__")]
        return sum("_" not in name for name in names) / len(names)

    @cached_property
    def shared_classes(self) -> dict[str, list[str]]:
        """Names of classes at the top of two or more modules, with these modules."""
        where: dict[str, list[str]] = defaultdict(list)
        for file in self.files:
            for node in ast.parse((self.root / file).read_text()).body:
                if isinstance(node, ast.ClassDef):
                    where[node.name].append(str(file))
        return {name: modules for name, modules in sorted(where.items()) if len(modules) > 1}

    @cached_property
    def circles(self) -> list[list[str]]:
        """Groups of modules that import each other."""
        command = [sys.executable, "-c", CIRCLES]
        environment = {"PYTHONPATH": str(self.root / "src"), "PATH": ""}
        run = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=True
        )
        return _circles(json.loads(run.stdout))

    @cached_property
    def citations(self) -> tuple[int, int]:
        """Number of citations of the theory in the code, and number of those that name an existing section."""
        pages = [page.read_text() for page in (self.root / "docs" / "theory").glob("*.md")]
        sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?) ", "\n".join(pages), re.MULTILINE))
        texts = [(self.root / file).read_text() for file in self.files]
        cited = [re.findall(r"\d+(?:\.\d+)?", run) for text in texts for run in CITATION.findall(text)]
        numbers = [number for run in cited for number in run]
        return len(numbers), sum(number in sections for number in numbers)

    def figures(self) -> dict[str, str]:
        """All figures, by their names."""
        longest = max(self.lines, key=self.lines.__getitem__)
        cited, resolved = self.citations
        return {
            "production modules": f"{len(self.lines)}",
            "lines of production code": f"{sum(self.lines.values()):,}",
            "median module, lines": f"{median(self.lines.values()):.0f}",
            "longest module, lines": f"{self.lines[longest]} (`{longest}`)",
            f"modules over {LONG_MODULE} lines": f"{sum(n > LONG_MODULE for n in self.lines.values())}",
            "functions": f"{len(self.functions):,}",
            f"functions over {LONG_FUNCTION} lines (body)": f"{len(self.long_functions)}",
            "function names of one word": f"{self.one_word:.0%}",
            "class names in two or more modules": f"{len(self.shared_classes)}",
            "import circles": f"{len(self.circles)}",
            "citations of the theory that resolve": f"{resolved} of {cited}",
        }

    def details(self) -> Iterator[str]:
        """Say what stands behind the figures, the worst first."""
        for file, count in Counter(self.lines).most_common():
            if count > LONG_MODULE:
                yield f"module    {count:4} {file}"
        for name, count in Counter(self.long_functions).most_common():
            yield f"function  {count:4} {name}"
        for name, modules in self.shared_classes.items():
            yield f"class     {name}: {', '.join(modules)}"
        for circle in self.circles:
            yield f"circle    {', '.join(circle)}"


def _body_lines(node: Function) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def _circles(imports: dict[str, list[str]]) -> list[list[str]]:
    """Strongly connected groups: modules that reach each other."""
    reached = {module: _reachable(imports, module) for module in imports}
    groups = {
        tuple(sorted(other for other in found if module in reached[other]))
        for module, found in reached.items()
        if module in found
    }
    return sorted(list(group) for group in groups)


def _reachable(imports: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports[module]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).resolve().parents[1]])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    houses = [House(checkout.resolve()) for checkout in given.checkouts]
    columns = [house.figures() for house in houses]
    print("| | " + " | ".join(f"`{house.root.name}`" for house in houses) + " |")
    print("|---" + "|---:" * len(houses) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")
    if given.list:
        print("\n".join(houses[-1].details()))


if __name__ == "__main__":
    main()
