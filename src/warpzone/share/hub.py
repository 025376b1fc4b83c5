"""Agents on the Hugging Face Hub, through `huggingface_hub`. The token is the one that library
finds (`HF_TOKEN`, or `hf auth login`); nothing here reads, prints or stores it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import warpzone
from warpzone.eval import card
from warpzone.eval.weights import Found
from warpzone.share.parcel import pack

#: Seconds without a byte after which a connection is given up.
SILENCE = 60.0
#: What a repository is called here.
REPO = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}")
TAGS = ["reinforcement-learning", "deep-reinforcement-learning", "super-mario-bros", "warpzone"]
LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


def hub_utils() -> Any:
    """The library's parts that requests of our own are made with, as its own are."""
    return importlib.import_module("huggingface_hub.utils")


def open_hub() -> Any:
    """The Hub's interface; connections that fall silent are given up."""
    from huggingface_hub import HfApi

    utils = hub_utils()
    utils.disable_progress_bars()
    utils.get_session().timeout = SILENCE
    return HfApi(library_name="warpzone", library_version=warpzone.__version__)


def check_repo(repo: str, *, owner: bool) -> None:
    """ValueError unless it is a repository's name; with `owner`, one that says whose it is."""
    if not REPO.fullmatch(repo) or ".." in repo or (owner and "/" not in repo):
        wanted = "OWNER/NAME" if owner else "OWNER/NAME, or NAME for one of your own"
        raise ValueError(f"a repository is called {wanted}, not {repo!r}")


def push(
    found: Found,
    repo: str,
    *,
    evals: tuple[Path, ...] = (),
    private: bool = False,
    license: str = "",
    message: str = "",
) -> tuple[str, int]:
    """Puts an agent into a repository, which is made if it is not there; its address, and how many
    evaluations went along. OSError with one sentence if the Hub does not take it."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    check_repo(repo, owner=False)
    name = repo.rpartition("/")[2]
    parcel = pack(found, name, evals)
    with explained(repo):
        hub = open_hub()
        # Also tells a wrong token before anything is made.
        user = hub.whoami()["name"]
        repo = repo if "/" in repo else f"{user}/{repo}"
        files = parcel.files(front_matter(parcel.about, license), repo)
        hub.create_repo(repo, private=private, exist_ok=True)
        there = {one.rfilename for one in hub.model_info(repo, timeout=SILENCE).siblings or ()}
        # Evaluations of what was there before are not those of these weights.
        old = {file for file in there - files.keys() if re.fullmatch(r"evaluation.*\.json", file)}
        done = hub.create_commit(
            repo,
            [
                *(CommitOperationAdd(file, content) for file, content in files.items()),
                *(CommitOperationDelete(file) for file in sorted(old)),
            ],
            commit_message=message or f"Agent {name}, {parcel.about['training']['steps']:,} steps",
        )
    return str(done.repo_url), len(parcel.documents)


def front_matter(about: Mapping[str, Any], license: str = "") -> str:
    """The metadata of a card, in the Hub's format: what was measured as results of a model."""
    from huggingface_hub import EvalResult, ModelCardData

    results = []
    for one in about["measured"]:
        for policy, clears in one["clears"].items():
            got, of = card.total(clears)
            stages = next(iter(clears)) if len(clears) == 1 else f"{len(clears)} stages"
            results.append(
                EvalResult(
                    task_type="reinforcement-learning",
                    task_name="reinforcement-learning",
                    dataset_type="warpzone/SuperMarioBros",
                    dataset_name="Super Mario Bros",
                    # Results of the same dataset and configuration would be taken for one.
                    dataset_config=f"{stages}, {card.label(one)}, {policy}",
                    metric_type="clear_rate",
                    metric_name=f"episodes that reach the flag, of {of}",
                    metric_value=round(got / of, 4),
                    verified=False,
                )
            )
    made = ModelCardData(
        license=license or None,
        library_name="warpzone",
        pipeline_tag="reinforcement-learning",
        tags=TAGS,
        model_name=about["name"],
        eval_results=results or None,
    )
    return made.to_yaml()


@contextmanager
def explained(repo: str) -> Iterator[None]:
    """Turns what the library raises into an OSError (ValueError for a wrong name) of one sentence.
    Its own texts have several lines, and addresses of requests in them."""
    from huggingface_hub import errors

    # Of the library that it makes requests with, which differs from version to version.
    http: type[Exception] = getattr(errors, "HTTPError")  # noqa: B009
    try:
        yield
    except errors.HFValidationError as error:
        raise ValueError(f"{repo!r} is not the name of a repository") from error
    except errors.OfflineModeIsEnabled as error:
        raise OSError("HF_HUB_OFFLINE is set; unset it to reach the Hub") from error
    except errors.LocalTokenNotFoundError as error:
        raise OSError(f"pushing needs a token of the Hub; {LOG_IN}") from error
    except errors.HfHubHTTPError as error:
        raise OSError(_refusal(repo, error)) from error
    except http as error:
        raise OSError(_unreachable(error)) from error
    except ValueError as error:
        # What was sent or answered has not the form that the other side expects.
        raise OSError(f"the Hub and this program disagree: {_first_line(error)}") from error
    except RuntimeError as error:
        # An upload that failed for one of the reasons above.
        cause = error.__cause__
        if isinstance(cause, errors.HfHubHTTPError):
            raise OSError(_refusal(repo, cause)) from error
        if isinstance(cause, http):
            raise OSError(_unreachable(cause)) from error
        raise OSError(f"the Hub did not take the files: {_first_line(error)}") from error


def _refusal(repo: str, error: Any) -> str:
    from huggingface_hub import errors

    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return f"{repo} asks for its owner's permission, which this token has not"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo} has no such revision"
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"{repo} lacks a file of an agent"
    if isinstance(error, errors.RepositoryNotFoundError) and status != 401:
        return f"the Hub has no repository {repo}, or this token may not see it"
    reasons = {
        401: f"the Hub refuses the token, or {repo} is not public; {LOG_IN}",
        403: f"the token may not do that with {repo}; make one that may write",
        404: f"the Hub has no repository {repo}, or this token may not see it",
        429: "the Hub asks to wait: too many requests",
    }
    return reasons.get(status, f"the Hub answered {status}; try again later")


def _unreachable(error: Exception) -> str:
    from huggingface_hub import constants

    return f"the connection to {constants.ENDPOINT} failed ({_first_line(error)}); is it up?"


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text else type(error).__name__
