"""BibTeX entries of the papers whose bounds of amplification `compare` computes."""

from __future__ import annotations

from typing import NamedTuple

from shufflebounds._base import __version__

__all__ = ["PAPERS", "THIS_LIBRARY", "Paper"]


class Paper(NamedTuple):
    """A paper: its key in BibTeX, authors, title, place and year of publication, and number on arXiv."""

    key: str
    authors: str
    title: str
    place: str
    year: int
    arxiv: str
    journal: bool = False

    @property
    def bibtex(self) -> str:
        """The entry; braces around the title keep its capital letters."""
        fields = {"author": self.authors, "title": f"{{{self.title}}}",
                  "journal" if self.journal else "booktitle": self.place, "year": str(self.year),
                  "eprint": self.arxiv, "archiveprefix": "arXiv", "url": f"https://arxiv.org/abs/{self.arxiv}"}
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
        return f"@{'article' if self.journal else 'inproceedings'}{{{self.key},\n{lines}}}"


_FMT = "Feldman, Vitaly and McMillan, Audra and Talwar, Kunal"

PAPERS = {
    ("balle2019_bennett", "balle2019_hoeffding"): Paper(
        "balle2019blanket", 'Balle, Borja and Bell, James and Gasc{\\\'o}n, Adri{\\`a} and Nissim, Kobbi',
        "The Privacy Blanket of the Shuffle Model", "Advances in Cryptology (CRYPTO)", 2019, "1903.02837"),
    ("clones_apple", "clones_closed_form"): Paper(
        "feldman2021clones", _FMT,
        "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification by Shuffling",
        "IEEE Symposium on Foundations of Computer Science (FOCS)", 2021, "2012.12803"),
    ("stronger_clones_closed_form",): Paper(
        "feldman2023stronger", _FMT,
        "Stronger Privacy Amplification by Shuffling for R{\\'e}nyi and Approximate Differential Privacy",
        "ACM-SIAM Symposium on Discrete Algorithms (SODA)", 2023, "2208.04591"),
    ("erlingsson2019",): Paper(
        "erlingsson2019amplification",
        "Erlingsson, {\\'U}lfar and Feldman, Vitaly and Mironov, Ilya and Raghunathan, Ananth and Talwar, Kunal "
        "and Thakurta, Abhradeep",
        "Amplification by Shuffling: From Local to Central Differential Privacy via Anonymity",
        "ACM-SIAM Symposium on Discrete Algorithms (SODA)", 2019, "1811.12469"),
    ("girgis2021_eps", "girgis2021_rdp"): Paper(
        "girgis2021renyi",
        "Girgis, Antonious M. and Data, Deepesh and Diggavi, Suhas and Suresh, Ananda Theertha and Kairouz, Peter",
        "On the R{\\'e}nyi Differential Privacy of the Shuffle Model",
        "ACM Conference on Computer and Communications Security (CCS)", 2021, "2105.05180"),
    ("koskela2023_clones",): Paper(
        "koskela2023numerical", "Koskela, Antti and Heikkil{\\\"a}, Mikko A. and Honkela, Antti",
        "Numerical Accounting in the Shuffle Model of Differential Privacy", "Transactions on Machine Learning Research", 2023,
        "2106.00477", journal=True),
}
"""The paper of each bound, by the names of its bounds."""

THIS_LIBRARY = f"""@software{{shufflebounds,
  author = {{{{The shufflebounds developers}}}},
  title = {{{{shufflebounds: exact privacy accounting for the shuffle model}}}},
  version = {{{__version__}}},
}}"""
"""The entry of this library, as in CITATION.cff."""
