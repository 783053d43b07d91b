"""What both products need: small modules on the standard library and PyYAML, which import neither product."""
