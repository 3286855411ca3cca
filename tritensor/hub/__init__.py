"""Models by a folder or a repository's name, downloads that are checked: torch.hub, without running any repository's code."""

from urllib.parse import urlparse as urlparse

from tritensor.ground.errors import DownloadError as DownloadError
from tritensor.hub.loading import HASH_REGEX as HASH_REGEX
from tritensor.hub.loading import download_url_to_file as download_url_to_file
from tritensor.hub.loading import help as help
from tritensor.hub.loading import list as list
from tritensor.hub.loading import load as load
from tritensor.hub.loading import load_state_dict as load_state_dict
from tritensor.hub.loading import load_state_dict_from_url as load_state_dict_from_url
from tritensor.hub.loading import pins as pins
from tritensor.hub.repository import _get_torch_home as _get_torch_home
from tritensor.hub.repository import get_dir as get_dir
from tritensor.hub.repository import set_dir as set_dir
