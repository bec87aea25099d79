"""The rules of the house, read off the code."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import hermes_jev

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "hermes_jev"
MODULES = sorted(PACKAGE.rglob("*.py"))
ADAPTER = {"engine.py", "host.py"}
HOST = {"agent", "hermes_cli", "hermes_constants", "hermes_state", "run_agent", "tools", "gateway", "plugins"}
ASKS_THE_HOST = "doctor/look.py"
"""Run by the host's Python, in a process of its own: inside its functions it imports the host and the host's YAML."""

TOP_LEVEL = {
    *(
        "pyproject.toml",
        "hermes_jev",
        "plugin.yaml",
        "skills",
        "tests",
        "README.md",
        "__init__.py",
        "Makefile",
        "LICENSE",
    ),
    *("CHANGELOG.md", "docs", "benchmarks"),
}
FILE_LINES, FUNCTION_LINES = 400, 60

BROAD = {
    ("engine.py", "compress"): "the user's turn goes on whatever is wrong in a pass",
    ("listeners.py", "tell"): "a callback of somebody else's must not cost a pass",
    ("redact.py", "_attempt"): "a host's redactor may raise anything, and then the text is not sent",
    ("registration.py", "_attempt"): "what a host refuses must not cost the engine, which is registered already",
    ("slash.py", "_written"): "the host's model may fail in any way, and the request is shown instead",
    ("judge/blocking.py", "_answer"): "a judge of somebody else's must not cost a turn",
    ("doctor/look.py", "look"): "what the host or a plugin raises when it is asked is the answer",
    ("judge/blocking.py", "run"): "what a thread raises is raised where its future is awaited",
}
"""The only places where everything is caught, and why."""

PATHS_AS_EXAMPLES = {"tests/test_redact.py", "benchmarks/record_demo.py"}
"""Files that are about paths of people's machines."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def project_files() -> list[Path]:
    """Every file of the project: what git knows or would add, or, without git, all that is no cache."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [
            path
            for path in ROOT.rglob("*")
            if not re.search(r"/(?:\.|__pycache__|.*\.egg-info)", f"/{path.relative_to(ROOT)}")
        ]
    return sorted({path for path in found if path.is_file()})


def texts() -> Iterator[tuple[str, str]]:
    for path in project_files():
        data = path.read_bytes()
        if b"\0" not in data:
            yield path.relative_to(ROOT).as_posix(), data.decode("utf-8")


FILES = pytest.mark.parametrize("path", MODULES, ids=name_of)


# --- imports ------------------------------------------------------------------------------------------------------


def imports(tree: ast.AST) -> Iterator[tuple[int, str, list[str]]]:
    """(level, module, names) of every import in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


@FILES
def test_only_the_adapter_imports_the_host(path: Path) -> None:
    foreign = {module.split(".")[0] for level, module, _ in imports(tree_of(path)) if level == 0}

    assert "hermes_jev" not in foreign, "imports inside the package are relative"
    assert "hermes_plugins" not in foreign
    if path.name not in ADAPTER and name_of(path) != ASKS_THE_HOST:
        assert not foreign & HOST


def test_what_asks_the_host_stands_alone_and_imports_it_in_functions_only() -> None:
    tree = tree_of(PACKAGE / ASKS_THE_HOST)
    outside = [node for node in at_module_level(tree) if isinstance(node, ast.Import | ast.ImportFrom)]

    named = {module.split(".")[0] for node in outside for _, module, _ in imports(ast.Module([node], []))}
    assert named <= set(sys.stdlib_module_names)
    assert not [node for node in outside if isinstance(node, ast.ImportFrom) and node.level]


def test_the_adapter_does_import_the_host() -> None:
    """The rule above would hold for anything if it looked at the wrong files."""
    found = {
        p.name
        for p in MODULES
        for level, module, _ in imports(tree_of(p))
        if level == 0 and module.split(".")[0] in HOST
    }

    assert found == {*ADAPTER, Path(ASKS_THE_HOST).name}


def at_module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, those inside if, try and with too."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            waiting.append(child)
            if isinstance(child, ast.stmt):
                yield child


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def needs(path: Path) -> set[str]:
    """The modules of the package that importing this one imports."""
    known = {dotted(module) for module in MODULES}
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    found: set[str] = set()
    for node in at_module_level(tree_of(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package.split(".")[: len(package.split(".")) - node.level + 1]
        target = ".".join([*base, *([node.module] if node.module else [])])
        named = {f"{target}.{alias.name}" for alias in node.names} & known
        found |= named or {target}
        # Importing a module of a folder runs the folder's own file first.
        parent = target.rpartition(".")[0]
        if not package.startswith(parent):
            found.add(parent)
    return found - {dotted(path), "hermes_jev"}


def test_no_module_is_imported_by_what_it_imports() -> None:
    graph = {dotted(path): needs(path) for path in MODULES}
    assert sum(map(len, graph.values())) > 50
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module not in done:
            for needed in sorted(graph[module]):
                visit(needed, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_platformdirs_is_imported_inside_two_functions_only() -> None:
    """Neither host has it."""
    allowed = {"stores.py": ["default_folder"], "effective.py": ["user_file"]}
    for path in MODULES:
        inside = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef)]
        lazy = [f.name for f in inside if any(module == "platformdirs" for _, module, _ in imports(f))]
        eager = [
            node
            for node in at_module_level(tree_of(path))
            if "platformdirs" in ast.unparse(node).split() and isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert not eager, name_of(path)
        assert lazy == allowed.get(path.name, []), name_of(path)


WATCH = """
import json, os, sys
seen = []
def watch(event, arguments):
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else 0
        if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
            seen.append([event, str(arguments[0])])
    elif event.split(".")[0] in ("socket", "sqlite3", "subprocess", "ctypes", "shutil", "tempfile") or event in (
        "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.system", "os.exec",
        "os.posix_spawn", "os.fork", "os.putenv",
    ):
        seen.append([event, str(arguments)])
sys.addaudithook(watch)
import hermes_jev
host = [name for name in sys.modules if name.split(".")[0] in sys.argv[1].split(",") or name == "platformdirs"]
print(json.dumps({"seen": seen, "host": host}))
"""


def test_importing_the_package_does_nothing(tmp_path: Path) -> None:
    """No file written, no folder made, no address asked for, no store opened, no host needed."""
    child = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", WATCH, ",".join(HOST)],
        cwd=tmp_path,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(child.stdout) == {"seen": [], "host": []}
    assert child.stderr == ""
    assert list(tmp_path.iterdir()) == []


# --- the code -----------------------------------------------------------------------------------------------------


@FILES
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or node.lineno) - node.lineno < FUNCTION_LINES, node.name


def broad_excepts(path: Path) -> Iterator[str]:
    """Names of the functions that catch everything, one for each place."""
    for function in ast.walk(tree_of(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in own_nodes(function):
                if isinstance(node, ast.ExceptHandler):
                    caught = ast.unparse(node.type) if node.type else "BaseException"
                    if re.search(r"\b(?:Base)?Exception\b", caught):
                        yield function.name


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function and in none that is inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from own_nodes(child)


def test_everything_is_caught_in_few_places_that_are_known() -> None:
    found = [(name_of(path), function) for path in MODULES for function in broad_excepts(path)]

    assert sorted(found) == sorted(BROAD)


@FILES
def test_no_failure_is_passed_over_in_silence(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno} catches everything without a name"
            silent = all(isinstance(step, ast.Pass) for step in node.body)
            assert not silent, f"line {node.lineno} catches {ast.unparse(node.type)} and does nothing"


@FILES
def test_own_types_are_not_probed(path: Path) -> None:
    if path.name not in ADAPTER:
        called = {
            node.func.id
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"getattr", "hasattr", "setattr", "eval", "exec"}


def documented(path: Path) -> Iterator[tuple[str, bool]]:
    """Public functions, classes and methods, and whether they have a docstring."""
    tree = tree_of(path)
    yield "the module", ast.get_docstring(tree) is not None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node) is not None
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", ast.get_docstring(inner) is not None


@FILES
def test_what_is_public_says_what_it_does(path: Path) -> None:
    assert [name for name, told in documented(path) if not told] == []


def test_there_are_no_mocks() -> None:
    banned = "unittest." + "mock"
    for path in [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]:
        for _, module, names in imports(tree_of(path)):
            assert not f"{module}.{'.'.join(names)}".startswith(banned), path.name
            assert module.split(".")[0] != "mock", path.name


def test_every_test_can_fail() -> None:
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                body = ast.unparse(node)
                calls = {c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
                assert re.search(r"\bassert\b|raises\(|fail\(", body) or calls, (
                    f"{path.name}: {node.name} asserts nothing"
                )
                assert ("assert " + "True") not in body, f"{path.name}: {node.name}"


# --- texts --------------------------------------------------------------------------------------------------------


def test_the_top_level_holds_what_is_known() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in project_files()}

    assert {name for name in found if not name.startswith(".")} <= TOP_LEVEL
    assert {"pyproject.toml", "hermes_jev", "tests", "README.md", "LICENSE", "plugin.yaml", "__init__.py"} <= found


MACHINE = re.compile(
    "|".join(("/" + r"work(?![\w-])", "/" + r"tmp/h(?![\w-])", "/" + r"root(?![\w-])", "/" + r"home/\w"))
)
REGISTRY = re.compile(
    "|".join(
        (
            r"\bpypi\." + "org",
            "files" + r"\.pythonhosted",
            "registry" + r"\.npm",
            "artifact" + "ory",
            "--index-" + "url",
            "dev" + "pi",
        )
    )
)
LEFTOVER = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


def test_no_text_names_a_machine_or_a_registry_or_is_left_over() -> None:
    found = []
    for name, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            if name not in PATHS_AS_EXAMPLES and MACHINE.search(line):
                found.append(f"{name}:{number}: a path of a machine")
            if REGISTRY.search(line):
                found.append(f"{name}:{number}: a registry")
            if LEFTOVER.search(line):
                found.append(f"{name}:{number}: left over")

    assert found == []


def test_those_patterns_find_what_they_are_for() -> None:
    for sample in ("/wor" + "k/main", "see /roo" + "t/.cache", "/hom" + "e/bob"):
        assert MACHINE.search(sample)
    for sample in ("/workspace/src", "the root of it", "/homepage", "src/workers"):
        assert not MACHINE.search(sample)
    assert REGISTRY.search("https://pypi" + ".org/simple")


def test_texts_end_with_one_line_end_and_use_the_unix_one() -> None:
    for name, text in texts():
        assert "\r" not in text, name
        assert not text or (text.endswith("\n") and not text.endswith("\n\n")), name


# --- packaging ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def plugin_field(name: str) -> str:
    found = re.search(rf"^{name}: *(.*?) *$", (ROOT / "plugin.yaml").read_text(encoding="utf-8"), re.M)
    assert found, name
    return found[1]


def engine_constant(name: str) -> Any:
    for node in tree_of(PACKAGE / "engine.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"engine.py has no {name}")


def test_the_root_file_is_one_import() -> None:
    text = (ROOT / "__init__.py").read_text(encoding="utf-8")

    (only,) = ast.parse(text).body
    assert isinstance(only, ast.ImportFrom)
    assert (only.level, only.module, [alias.name for alias in only.names]) == (1, "hermes_jev", ["register"])
    assert "ContextEngine" not in text
    assert "register_context_engine" not in text


def test_the_plugin_names_the_engine_and_its_version(project: Any) -> None:
    assert plugin_field("name") == engine_constant("NAME") == "hermes_jev"
    assert plugin_field("version") == project["project"]["version"] == hermes_jev.__version__


def test_the_entry_point_names_the_module(project: Any) -> None:
    """The host looks for `register` on what it loads, which a function does not have."""
    assert project["project"]["entry-points"]["hermes_agent.plugins"] == {"hermes_jev": "hermes_jev"}
    assert project["project"]["scripts"]["jev"] == "hermes_jev.cli:main"
    assert callable(hermes_jev.register)


HOST_PINS = {"httpx": "0.28.1", "pydantic": "2.13.4", "rich": "14.3.3"}


def test_runtime_dependencies_are_few_and_contain_the_hosts_pins(project: Any) -> None:
    needed = {requirement.name: requirement for requirement in map(Requirement, project["project"]["dependencies"])}

    assert set(needed) == {"httpx", "pydantic", "platformdirs", "rich"}
    for name, pin in HOST_PINS.items():
        assert needed[name].specifier.contains(pin)


def test_only_those_dependencies_are_imported(project: Any) -> None:
    allowed = {*sys.stdlib_module_names, *HOST, "httpx", "pydantic", "platformdirs", "rich"}

    used = {module.split(".")[0] for path in MODULES for level, module, _ in imports(tree_of(path)) if level == 0}
    assert used <= allowed
    by_name = [name_of(path) for path in MODULES if "import_module(" in path.read_text(encoding="utf-8")]
    assert by_name == [ASKS_THE_HOST]


def test_what_is_exported_is_there_and_nothing_else_is_public() -> None:
    tree = tree_of(PACKAGE / "__init__.py")
    bound = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    bound |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    assert sorted(hermes_jev.__all__) == sorted(set(hermes_jev.__all__))
    assert all(vars(hermes_jev)[name] is not None for name in hermes_jev.__all__)
    assert bound - {"annotations", "Any"} == set(hermes_jev.__all__)


def test_type_hints_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()
