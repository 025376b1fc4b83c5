"""Which searches have a report of their own."""

from __future__ import annotations

from pathlib import Path

from warpzone.report.html import Markup
from warpzone.report.population import is_population, population_sections, read_population
from warpzone.report.sweep import is_sweep, read_sweep, sweep_sections


def is_search(folder: Path) -> bool:
    """Whether a folder is that of a sweep or a population."""
    return is_sweep(folder) or is_population(folder)


def search_sections(folder: Path) -> tuple[str, list[Markup]]:
    """Its name, and the parts of its page."""
    if is_population(folder):
        population = read_population(folder)
        return population.name, population_sections(population)
    data = read_sweep(folder)
    return data.name, sweep_sections(data)
