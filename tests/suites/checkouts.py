"""Checkouts of the suites at their commits: cloned from GitHub, or from clones in a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path


def find_clone(folder: Path, repository: str) -> Path:
    """Return the clone of a repository, owner/name, in a folder of clones; raise if there is none."""
    name = repository.partition("/")[2]
    for candidate in (repository, repository.replace("/", "+"), name, f"{name}.git"):
        for clone in (folder / candidate, folder / candidate / "repo"):
            if (clone / ".git").exists() or (clone / "HEAD").exists():
                return clone
    raise FileNotFoundError(f"{folder} has no clone of {repository}")


def check_out(repository: str, commit: str, folder: Path, clones: Path | None) -> None:
    """Check out a commit of a repository, owner/name, into a folder, unless it is there."""
    if git(folder, "rev-parse", "HEAD") == commit:
        return
    origin = str(find_clone(clones, repository).resolve()) if clones else f"https://github.com/{repository}"
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ("init", "--quiet"),
        ("fetch", "--quiet", "--depth=1", origin, commit),
        ("checkout", "--quiet", "--force", commit),
    ):
        if git(folder, *command) is None:
            raise FileNotFoundError(f"git {command[0]} of {origin} at {commit} failed; its message is above")


def git(folder: Path, *arguments: str) -> str | None:
    """Run git in a checkout, and return its output, or None if it fails."""
    if arguments[0] == "rev-parse" and not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "-c", "advice.detachedHead=false", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return None if done.returncode else done.stdout.strip()
