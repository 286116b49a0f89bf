"""Execute the chapters that changed side by side, before Sphinx reads them one by one.

What ran is put into MyST-NB's cache, where Sphinx finds it. A chapter with an error is
not: MyST-NB runs it again and reports it.
"""

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from chapters import chapter_text
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from sphinx.util import logging

logger = logging.getLogger(__name__)


def stale_chapters(app, docnames, cache) -> dict:
    """The notebooks among the pages that the cache doesn't hold as they are now."""
    paths = [Path(app.env.doc2path(name)) for name in docnames]
    stale = {}
    for path in sorted(path for path in paths if path.suffix == ".ipynb"):
        notebook = nbformat.reads(chapter_text(path.read_text("utf-8"), path), 4)
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            stale[path] = notebook
    return stale


def execute_side_by_side(app, env, docnames) -> None:
    """Sphinx event: fill the cache, with one kernel a processor."""
    if env.mystnb_config.execution_mode != "cache":
        return
    cache = get_cache(env.mystnb_config.execution_cache_path)
    stale = stale_chapters(app, docnames, cache)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a kernel's, as there are others

    def execute(path):
        timeout = env.mystnb_config.execution_timeout
        result = single_nb_execution(stale[path], str(path.parent), timeout, False)
        return path, result

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in as_completed([pool.submit(execute, path) for path in stale]):
            path, result = job.result()
            logger.info("%s: executed in %.0f seconds", path.name, result.time)
            if result.err is None:
                seconds = {"execution_seconds": result.time}
                bundle = CacheBundleIn(result.nb, str(path), data=seconds)
                cache.cache_notebook_bundle(
                    bundle, check_validity=False, overwrite=True
                )


def setup(app):
    app.connect("env-before-read-docs", execute_side_by_side)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
