"""The syntax of Kubernetes names: of labels, subdomains, qualified names, label values, label selectors and images.

Kubernetes checks how long a domain is, but not its parts. The component accepts what an API server accepts: `SUBDOMAIN`
and `QUALIFIED_NAME`. The operator's settings require what DNS requires as well, parts of at most 63 characters:
`STRICT_SUBDOMAIN` and `STRICT_QUALIFIED_NAME`.

`kube_node_ready.api.paths.is_dns_subdomain` accepts the same as `SUBDOMAIN`, without a regular expression: it guards
the path of every request, and each worker would load this module and compile the pattern. A test compares the two.
"""

import re

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_STRICT_DOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# A selector's keys are checked loosely: the API server says what is wrong with one. Spaces belong to what they follow.
# If they could belong to either side, a text that fails would take forever.
_KEY = rf"([a-z0-9][a-z0-9.-]{{0,252}}/)?{_NAME}"
_VALUES = rf"\( *({_NAME} *)?(, *({_NAME} *)?)*\) *"
_REQUIREMENT = rf" *(! *{_KEY} *|{_KEY} *((=|==|!=) *({_NAME} *)?|(?<= )(not)?in *{_VALUES})?)"


class Syntax:
    """A kind of name. `pattern` is for whole texts, and compiled when it is used; `description` is a noun phrase."""

    __slots__ = ("description", "pattern")

    def __init__(self, pattern: str, description: str) -> None:
        self.pattern = pattern
        self.description = description

    def matches(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text) is not None


LABEL = Syntax(_LABEL, "a name of at most 63 lower-case letters, digits and '-', with a letter or digit at both ends")
SUBDOMAIN = Syntax(
    rf"(?=.{{1,253}}\Z){_DOMAIN}",
    "a name of lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
)
STRICT_SUBDOMAIN = Syntax(rf"(?=.{{1,253}}\Z){_STRICT_DOMAIN}", SUBDOMAIN.description)
# The length is counted up to the slash: a domain alone can be as long as an object's name.
QUALIFIED_NAME = Syntax(
    rf"((?=[^/]{{1,253}}/){_DOMAIN}/)?{_NAME}",
    "a Kubernetes key such as example.com/name, the name with at most 63 characters",
)
STRICT_QUALIFIED_NAME = Syntax(rf"((?=[^/]{{1,253}}/){_STRICT_DOMAIN}/)?{_NAME}", QUALIFIED_NAME.description)
LABEL_VALUE = Syntax(
    rf"({_NAME})?",
    "a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
)
LABEL_SELECTOR = Syntax(
    rf"(?=.{{1,1000}}\Z){_REQUIREMENT}(,{_REQUIREMENT})*", "a label selector such as app=node-agent"
)


def image_parts(reference: str) -> tuple[str, str | None, str | None]:
    """Split repository[:tag][@digest]; missing parts are None. A colon before the last slash belongs to a registry's
    port.
    """
    name, at, digest = reference.partition("@")
    colon = name.rfind(":")
    tagged = colon > name.rfind("/")
    return name[:colon] if tagged else name, name[colon + 1 :] if tagged else None, digest if at else None
