"""torch.utils.data.datapipes: pipes of data, of which there are none here; libraries ask isinstance of the class that shuffles."""

from __future__ import annotations

from typing import Any, NoReturn


class ShufflerIterDataPipe:
    """No data set is one. Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "ShufflerIterDataPipe: not in tritensor: data pipes are not part of the library; DataLoader(dataset, shuffle=True) shuffles"
        )
