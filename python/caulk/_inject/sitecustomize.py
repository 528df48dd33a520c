# Loads caulk's agent into this Python, then whatever sitecustomize the program would have had without caulk.
# Alone in this folder, which `caulk run` puts first on PYTHONPATH. Every Python that the program starts reads this
# file, also 2.7 and 3.6, where it does nothing more.
import sys


def _caulk(folder):
    import os

    settings = os.environ.get("CAULK_AGENT")
    if not settings or not os.environ.get("CAULK_SOCKET"):
        return
    package = folder.rpartition("/")[0]
    external = sys.modules["_frozen_importlib_external"]

    class Finder:
        """Finds the package `caulk` that belongs to the `caulk` that is running, and nothing else that lies beside it."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "caulk":
                location = package + "/__init__.py"
                return external.spec_from_file_location(name, location, submodule_search_locations=[package])
            return None

    started = False
    sys.meta_path.insert(0, Finder)
    try:
        from caulk import _bootstrap

        started = _bootstrap.start(settings)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        # The program comes first: it runs as without caulk, and the supervisor misses the agent's greeting. A panic of
        # the agent's library is no `Exception`.
        pass
    if not started:
        sys.meta_path.remove(Finder)
        for name in list(sys.modules):
            if name.partition(".")[0] == "caulk":
                del sys.modules[name]


_folder = __file__.rpartition("/")[0]
sys.path[:] = [entry for entry in sys.path if entry != _folder]
sys.path_importer_cache.pop(_folder, None)
# Kept until the end of this file, which Python 2 would otherwise forget on the way.
_self = sys.modules.pop("sitecustomize", None)
if sys.version_info >= (3, 10) and sys.implementation.name == "cpython":
    _caulk(_folder)
# The program's own. Where there is none this raises ImportError, as the same import does without caulk.
import sitecustomize  # noqa: E402, F401
