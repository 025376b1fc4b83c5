"""`/metrics`: what Prometheus is told, and that rules and dashboards ask for what there is."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from dashboard_server import TOKEN, Dashboard, wait, write_rows

from warpzone.dashboard.exposition import ABOUT, MOST_RUNS, PREFIX, expose
from warpzone.metrics import schema

DEPLOY = Path(__file__).parents[3] / "deploy"
SAMPLE = re.compile(r'^(warpzone_\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)$')
NAMED = re.compile(rf"{PREFIX}\w+")


def samples(text: str) -> dict[str, float]:
    """Every sample by its name and labels; each must have the form that Prometheus reads."""
    found: dict[str, float] = {}
    told: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# "):
            told.add(line.split()[2])
            continue
        match = SAMPLE.match(line)
        assert match is not None, line
        assert match[1] in told
        key = f"{match[1]}{{{match[2]}}}" if match[2] else match[1]
        assert key not in found
        found[key] = float(match[3])
    return found


def make_run(folder: Path, name: str, row: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    path = folder / name
    path.mkdir(parents=True)
    (path / "config.json").write_text('{"max_steps": 100}')
    write_rows(path / "metrics.jsonl", [row])
    return path, {"max_steps": 100}


def test_the_newest_row_of_every_run(tmp_path: Path) -> None:
    row = {
        "update": 3,
        "global_step": 5,
        "clear_rate": 0.25,
        "clear_rate_1_2": 0.5,
        "avg_return": None,
    }
    one = make_run(tmp_path, "one", row)
    write_rows(one[0] / "alerts.jsonl", [{"kind": "nan", "timestamp": 12.5, "text": "x"}])
    write_rows(one[0] / "heartbeat.jsonl", [{"idle_seconds": 1.5}])
    odd = {"update": True, "entropy": 10**400, "loss_total": "9", "unknown": 1.0, "grad_norm": 2}
    two = make_run(tmp_path, 'two "\\', odd)
    found = samples(expose([one, two]))
    assert found['warpzone_global_step{run="one"}'] == 5
    assert found['warpzone_stage_clear_rate{run="one",stage="1-2"}'] == 0.5
    assert found['warpzone_last_alert_timestamp_seconds{run="one",kind="nan"}'] == 12.5
    assert found['warpzone_idle_seconds{run="one"}'] == 1.5
    assert found['warpzone_run_live{run="one"}'] == 1
    assert found['warpzone_run_max_steps{run="one"}'] == 100
    assert found['warpzone_grad_norm{run="two \\"\\\\"}'] == 2
    names = {key.partition("{")[0] for key in found}
    assert names.isdisjoint({f"warpzone_{name}" for name in ("entropy", "loss_total", "unknown")})
    assert "warpzone_avg_return" not in names
    assert samples(expose([])).keys() == {"warpzone_exposition_seconds"}


def ask(server: Dashboard, token: str = "", host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    connection.request("GET", "/metrics", headers={**headers, "host": f"{host}:{server.port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_it_is_off_unless_asked_for_and_needs_the_token_from_afar(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number in range(MOST_RUNS + 2):
        make_run(runs, f"run{number}", {"update": 1, "global_step": number})
    with Dashboard(runs) as off:
        assert ask(off)[0] == 404
    with Dashboard(runs, "--metrics") as on:
        wait(lambda: "warpzone_run_live" in ask(on)[1])
        assert len(re.findall("^warpzone_run_live", ask(on)[1], re.M)) == MOST_RUNS
        assert ask(on, host="elsewhere.example")[0] == 403
    with Dashboard(runs, "--metrics", host="0.0.0.0") as afar:
        assert ask(afar)[0] == 403
        assert ask(afar, TOKEN)[0] == 200


def known() -> set[str]:
    plain = {*schema.NAMES, *ABOUT}
    return {PREFIX + name for name in plain}


def test_rules_ask_for_what_there_is() -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = {name for rule in rules for name in NAMED.findall(rule["expr"])}
    assert len(asked) > 8
    assert asked <= known()
    assert all(rule["annotations"]["summary"] for rule in rules)
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    assert scraped["rule_files"] == ["alerts.yml"]


def test_the_dashboard_of_grafana_asks_for_what_there_is() -> None:
    document = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    names = {name for text in asked for name in NAMED.findall(text)}
    assert len(names) > 10
    assert names <= known()
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in document["panels"]]
    assert len(set(places)) == len(places)
