from .hermes_jev import register as register
