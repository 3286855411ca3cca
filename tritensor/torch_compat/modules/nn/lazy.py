"""nn.modules.lazy: the mixin of layers that learn their sizes from the first batch."""

from tritensor.nn.layers.lazy import LazyModuleMixin as LazyModuleMixin
