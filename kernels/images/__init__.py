"""Images and volumes: resampling, padding by what is there, sampling at a grid, patches."""
