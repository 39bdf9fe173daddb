"""Maps of users from the configuration, as ``userMap`` sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.classads import UNDEFINED, parse_expression
from condor_actors.classads.builtins.user_maps import UserMapError, define_user_map, read_user_map, user_map_names
from condor_actors.config import Config, ConfigError, load_config
from condor_actors.config.user_maps import use_user_maps, user_maps


@pytest.fixture(autouse=True)
def no_maps() -> Iterator[None]:
    yield
    for name in user_map_names():
        define_user_map(name, None)


def config_of(folder: Path, text: str, subsystem: str = "SCHEDD") -> Config:
    file = folder / "condor_config"
    file.write_text(text)
    return load_config(environ={"CONDOR_CONFIG": str(file)}, subsystem=subsystem)


def ask(text: str) -> object:
    return parse_expression(text).evaluate()


MANUAL = """
SCHEDD_CLASSAD_USER_MAP_NAMES = Trust $(SCHEDD_CLASSAD_USER_MAP_NAMES)
TOOL_CLASSAD_USER_MAP_NAMES = Trust
CLASSAD_USER_MAPDATA_Trust @=end
  * Bob   User
  * Alice Admin,math
  * /.*/  Nobody
@end
"""


def test_the_manuals_example(tmp_path: Path) -> None:
    use_user_maps(config_of(tmp_path, MANUAL))
    assert ask('userMap("Trust", "Bob")') == "User"
    assert ask('userMap("trust", "Alice", "MATH")') == "math"
    assert ask('userMap("Trust", "Alice", "x")') == "Admin"
    assert ask('userMap("Trust", "Carol")') == "Nobody"
    assert ask('userMap("Other", "Bob")') is UNDEFINED
    use_user_maps(config_of(tmp_path, MANUAL, "TOOL"))
    assert ask('userMap("Trust", "Bob")') == "User"
    use_user_maps(config_of(tmp_path, MANUAL, "STARTD"))
    assert ask('userMap("Trust", "Bob")') is UNDEFINED


def test_a_file_with_patterns_methods_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "groups.map"
    file.write_text('# groups\n\n* "John Doe" a b\n* /(.*)@Physics\\.x/i physics,\\1\ngrid Eve far\n* Eve near\n')
    config = config_of(tmp_path, f"SCHEDD_CLASSAD_USER_MAP_NAMES = G\nCLASSAD_USER_MAPFILE_G = {file}\n")
    use_user_maps(config)
    assert ask('userMap("G", "John Doe")') == "a,b"
    assert ask('userMap("G", "eve@physics.x", "eve")') == "eve"
    assert ask('userMap("G", "eve@physicszx")') is UNDEFINED
    assert ask('userMap("G", "Eve")') == "near"
    assert ask('userMap("G.grid", "Eve")') == "far"


def test_a_map_of_prefixes(tmp_path: Path) -> None:
    rules = read_user_map("* grid/ outer\n* grid/x inner\n", prefix=True)
    assert rules.find("grid/x/1") == "outer"
    assert rules.find("other") is None
    text = "SCHEDD_CLASSAD_USER_MAP_NAMES = P\nCLASSAD_USER_MAP_PREFIX_P = true\nCLASSAD_USER_MAPDATA_P = * ab c\n"
    assert user_maps(config_of(tmp_path, text))["P"].find("abc") == "c"


def test_what_is_no_map(tmp_path: Path) -> None:
    for text, problem in (
        ("SCHEDD_CLASSAD_USER_MAP_NAMES = A\n", "there is no CLASSAD_USER_MAPFILE_A"),
        ("SCHEDD_CLASSAD_USER_MAP_NAMES = A\nCLASSAD_USER_MAPFILE_A = /none\n", "cannot read the map A"),
        ("SCHEDD_CLASSAD_USER_MAP_NAMES = A\nCLASSAD_USER_MAPDATA_A = * bob\n", "line 1 of CLASSAD_USER_MAPDATA_A"),
    ):
        with pytest.raises(ConfigError, match=problem):
            user_maps(config_of(tmp_path, text))
    with pytest.raises(UserMapError, match="no regular expression") as caught:
        read_user_map("* a b\n* /(/ c\n")
    assert caught.value.line == 2
