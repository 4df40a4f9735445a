r"""Ten short invented papers in ten styles of citing, and what each cites, in order; "?" is a work that its list lacks."""

# ruff: noqa: E501 - lines of papers
from __future__ import annotations

from dataclasses import dataclass

URLS = {key: f"https://doi.org/10.5555/tide.{key}" for key in ("m19", "ol", "fhi", "wmo", "m21")}
_CHOSEN, _JUDGED = "chosen on", "judged on"


@dataclass(frozen=True)
class Paper:
    """A paper.

    Args:
        style: of its citations.
        half: "chosen on" or "judged on".
        suffix: of its file: what it is written as.
        text: Markdown, HTML or LaTeX; headings of a DOCX begin with "# ".
        cited: keys of its citations, with spaces between.
        bibliography: BibTeX beside it.
    """

    style: str
    half: str
    suffix: str
    text: str
    cited: str
    bibliography: str = ""


_APA = f"""# Tides of the Sound

Tidal range in the Sound has grown by 4% since 1980 (Marsh, 2019). Models agree (Ferrante et al., 2018; Okafor & Lindqvist, 2020,
p. 12). The World Meteorological Organization (2021) set the datum. Marsh (2021) revised it in May (see Figure 2).

An older survey gave 3% (Tolland & Wray, 2003), and storms were rare then (Monday, 2019).

# References

Ferrante, A., Holm, B., & Iyer, C. (2018). A model of tides. Journal of Tides, 4(2), 1-9. {URLS["fhi"]}

Marsh, D. (2019). Range and trend. Coast, 12, 30-41. {URLS["m19"]}

Marsh, D. (2021). The datum revised. Coast, 14, 2-11. {URLS["m21"]}

Okafor, E., & Lindqvist, F. (2020). Ensembles of tidal models. Ocean Press. {URLS["ol"]}

World Meteorological Organization. (2021). Guide to datums. {URLS["wmo"]}
"""

_CHICAGO_DATES = f"""# Tides of the Sound

The range has grown by 4 percent (Marsh 2019, 31). As Okafor and Lindqvist (2020, 12-14) show, ensembles agree (cf. Ferrante,
Holm, and Iyer 2018; World Meteorological Organization 2021). Marsh disagrees with his own earlier figure (2021).

Others had seen it before (Marsh 2019, 2021; Tolland and Wray 2003).

## Works Cited

Ferrante, Anna, Bo Holm, and Chandra Iyer. 2018. "A Model of Tides." *Journal of Tides* 4 (2): 1-9. {URLS["fhi"]}.

Marsh, Dora. 2019. "Range and Trend." *Coast* 12: 30-41. {URLS["m19"]}.

Marsh, Dora. 2021. "The Datum Revised." *Coast* 14: 2-11. {URLS["m21"]}.

Okafor, Eze, and Frida Lindqvist. 2020. *Ensembles of Tidal Models*. Oslo: Ocean Press. {URLS["ol"]}.

World Meteorological Organization. 2021. *Guide to Datums*. Geneva: WMO. {URLS["wmo"]}.
"""

_CHICAGO_NOTES = f"""# Tides of the Sound

The range has grown by 4 percent.[^1] Ensembles agree.[^2] So does an older model.[^3] The trend is steady.[^4] The datum was set in
2021.[^5] It was revised.[^6] Nobody noticed.[^7] One survey is lost.[^9]

[^1]: Dora Marsh, "Range and Trend," *Coast* 12 (2019): 31, {URLS["m19"]}.
[^2]: Eze Okafor and Frida Lindqvist, *Ensembles of Tidal Models* (Oslo: Ocean Press, 2020), 12, {URLS["ol"]}.
[^3]: Anna Ferrante, Bo Holm, and Chandra Iyer, "A Model of Tides," *Journal of Tides* 4, no. 2 (2018): 3, {URLS["fhi"]}.
[^4]: Marsh, "Range and Trend," 35.
[^5]: World Meteorological Organization, *Guide to Datums* (Geneva: WMO, 2021), {URLS["wmo"]}.
[^6]: Ibid., 14.
[^7]: Okafor and Lindqvist, *Ensembles of Tidal Models*, 15.
"""

_HARVARD = f"""<html><body><h1>Tides of the Sound</h1>
<p>The range has grown by 4% (Marsh 2019, p. 31). Ensembles agree (Okafor and Lindqvist 2020; Ferrante <i>et al.</i> 2018). The datum
was set by the World Meteorological Organization (2021) and changed by Marsh (2021).</p>
<p>An older survey (Tolland &amp; Wray 2003) gave 3% (p. 4) in winter (2003).</p>
<h2>Reference list</h2><ul>
<li>Ferrante, A., Holm, B. and Iyer, C. (2018) 'A model of tides', <i>Journal of Tides</i>, 4(2), pp. 1-9. doi: 10.5555/tide.fhi.</li>
<li>Marsh, D. (2019) 'Range and trend', <i>Coast</i>, 12, pp. 30-41. doi: 10.5555/tide.m19.</li>
<li>Marsh, D. (2021) 'The datum revised', <i>Coast</i>, 14, pp. 2-11. doi: 10.5555/tide.m21.</li>
<li>Okafor, E. and Lindqvist, F. (2020) <i>Ensembles of tidal models</i>. Available at: {URLS["ol"]} (Accessed: 3 May 2021).</li>
<li>World Meteorological Organization (2021) <i>Guide to datums</i>. Available at: {URLS["wmo"]}.</li></ul></body></html>
"""

_VANCOUVER = f"""# Tides of the Sound

The range has grown by 4% (1). Ensembles agree (2,3), and the datum was set (4) and revised (5). In all (1-3) the trend is positive.
There were (a) storms and (b) calms in 12 (30%) of the months. A survey is older (7).

## References

1. Marsh D. Range and trend. Coast. 2019;12:30-41. doi:10.5555/tide.m19
2. Okafor E, Lindqvist F. Ensembles of tidal models. Oslo: Ocean Press; 2020. Available from: {URLS["ol"]}
3. Ferrante A, Holm B, Iyer C. A model of tides. J Tides. 2018;4(2):1-9. doi:10.5555/tide.fhi
4. World Meteorological Organization. Guide to datums. Geneva: WMO; 2021. {URLS["wmo"]}
5. Marsh D. The datum revised. Coast. 2021;14:2-11. doi:10.5555/tide.m21
"""

_IEEE = f"""<html><body><h1>Tides of the Sound</h1>
<p>The range has grown by 4% [1]. Ensembles agree [2], [3], and the datum was set [4]. It was revised in [5, Sec. II]. In all
[1]-[3] the trend is positive, within [0, 1]. A survey is older [8].</p>
<h2>References</h2>
<p>[1] D. Marsh, "Range and trend," <i>Coast</i>, vol. 12, pp. 30-41, 2019, doi: 10.5555/tide.m19.</p>
<p>[2] E. Okafor and F. Lindqvist, <i>Ensembles of Tidal Models</i>. Oslo, Norway: Ocean Press, 2020, doi: 10.5555/tide.ol.</p>
<p>[3] A. Ferrante, B. Holm, and C. Iyer, "A model of tides," <i>J. Tides</i>, vol. 4, no. 2, pp. 1-9, 2018. {URLS["fhi"]}</p>
<p>[4] <i>Guide to Datums</i>, World Meteorological Organization, 2021. [Online]. Available: {URLS["wmo"]}</p>
<p>[5] D. Marsh, "The datum revised," <i>Coast</i>, vol. 14, pp. 2-11, 2021, doi: 10.5555/tide.m21.</p></body></html>
"""

_ACM = f"""<html><body><h1>Tides of the Sound</h1>
<p>The range has grown by 4% [3]. Ensembles agree [1, 5]. The datum was set by the World Meteorological Organization [6] and revised
by Marsh [4]. Earlier work [1, 3, 4] is reviewed by Tolland [2, 9].</p>
<h2>REFERENCES</h2>
<p>[1] Anna Ferrante, Bo Holm, and Chandra Iyer. 2018. A model of tides. <i>J. Tides</i> 4, 2 (2018), 1-9. {URLS["fhi"]}</p>
<p>[3] Dora Marsh. 2019. Range and trend. <i>Coast</i> 12 (2019), 30-41. {URLS["m19"]}</p>
<p>[4] Dora Marsh. 2021. The datum revised. <i>Coast</i> 14 (2021), 2-11. {URLS["m21"]}</p>
<p>[5] Eze Okafor and Frida Lindqvist. 2020. <i>Ensembles of Tidal Models</i>. Ocean Press, Oslo. {URLS["ol"]}</p>
<p>[6] World Meteorological Organization. 2021. <i>Guide to Datums</i>. WMO, Geneva. {URLS["wmo"]}</p></body></html>
"""

_NATURE = f"""<html><body><h1>Tides of the Sound</h1>
<p>The range has grown by 4%<sup>1</sup>. Ensembles agree<sup>2,3</sup>, over 10<sup>6</sup> m<sup>2</sup>. The datum was
set<sup>4</sup> and revised<sup>5</sup>. The trend is positive.<sup>1-3</sup> A survey is older.<sup>9</sup></p>
<h2>References</h2><ol>
<li>Marsh, D. Range and trend. <i>Coast</i> <b>12</b>, 30-41 (2019). <a href="{URLS["m19"]}">DOI</a></li>
<li>Okafor, E. &amp; Lindqvist, F. <i>Ensembles of Tidal Models</i> (Ocean Press, 2020). <a href="{URLS["ol"]}">DOI</a></li>
<li>Ferrante, A., Holm, B. &amp; Iyer, C. A model of tides. <i>J. Tides</i> <b>4</b>, 1-9 (2018). <a href="{URLS["fhi"]}">DOI</a></li>
<li>World Meteorological Organization. <i>Guide to Datums</i> (WMO, 2021). <a href="{URLS["wmo"]}">DOI</a></li>
<li>Marsh, D. The datum revised. <i>Coast</i> <b>14</b>, 2-11 (2021). <a href="{URLS["m21"]}">DOI</a></li></ol></body></html>
"""

_MLA = f"""# Tides of the Sound

The range has grown by 4 percent (Abara 31). Ensembles agree (Okafor and Lindqvist 12), as an older model did (Ferrante et al. 3). The
datum was set (World Meteorological Organization 7) and revised (Marsh 5). It took long (12 years) and cost much (page 4).

# Works Cited

Abara, Dora. "Range and Trend." *Coast*, vol. 12, 2019, pp. 30-41, {URLS["m19"]}.

Ferrante, Anna, et al. "A Model of Tides." *Journal of Tides*, vol. 4, no. 2, 2018, pp. 1-9, {URLS["fhi"]}.

Marsh, Dora. "The Datum Revised." *Coast*, vol. 14, 2021, pp. 2-11, {URLS["m21"]}.

Okafor, Eze, and Frida Lindqvist. *Ensembles of Tidal Models*. Ocean Press, 2020, {URLS["ol"]}.

World Meteorological Organization. *Guide to Datums*. WMO, 2021, {URLS["wmo"]}.
"""

_BIBLATEX = r"""\documentclass{article}
\usepackage[style=authoryear]{biblatex}
\addbibresource{tides.bib}
\begin{document}
\section{Tides of the Sound}
The range has grown by 4\% \parencite[31]{marsh2019}. Ensembles agree \autocite{okafor2020,ferrante2018}.
\textcite{wmo2021} set the datum.\footcite{marsh2021} % \cite{marsh2019}
All agree \parencites{marsh2019}[12]{okafor2020}, but an older survey \citep{tolland2003} is lost.\nocite{wmo2021}
\printbibliography
\end{document}
"""

_BIB = """@article{marsh2019, author = {Marsh, Dora}, title = {Range and Trend}, journaltitle = {Coast}, date = {2019}, doi = {10.5555/tide.m19}}
@book{okafor2020, author = {Okafor, Eze and Lindqvist, Frida}, title = {Ensembles}, year = 2020, url = {https://doi.org/10.5555/tide.ol}}
@article{ferrante2018, author = {Ferrante, Anna and Holm, Bo and Iyer, Chandra}, title = {A Model}, year = {2018}, doi = {10.5555/tide.fhi}}
@report{wmo2021, author = {{World Meteorological Organization}}, title = {Datums}, date = {2021}, doi = {10.5555/tide.wmo}}
@article{marsh2021, author = {Marsh, Dora}, title = {The Datum}, date = {2021-04}, doi = {https://doi.org/10.5555/tide.m21}}
"""

PAPERS = [
    Paper("APA", _CHOSEN, "docx", _APA, "m19 fhi ol wmo m21 ?"),
    Paper("Chicago, notes", _CHOSEN, "md", _CHICAGO_NOTES, "m19 ol fhi m19 wmo wmo ol ?"),
    Paper("IEEE", _CHOSEN, "pdf", _IEEE, "m19 ol fhi wmo m21 m19 ol fhi ?"),
    Paper("Nature", _CHOSEN, "html", _NATURE, "m19 ol fhi wmo m21 m19 ol fhi ?"),
    Paper("BibLaTeX", _CHOSEN, "tex", _BIBLATEX, "m19 ol fhi wmo m21 m19 ol ?", _BIB),
    Paper("Chicago, author-date", _JUDGED, "md", _CHICAGO_DATES, "m19 ol fhi wmo m21 m19 m21 ?"),
    Paper("Harvard", _JUDGED, "html", _HARVARD, "m19 ol fhi wmo m21 ?"),
    Paper("Vancouver", _JUDGED, "md", _VANCOUVER, "m19 ol fhi wmo m21 m19 ol fhi ?"),
    Paper("ACM", _JUDGED, "pdf", _ACM, "m19 fhi ol wmo m21 fhi m19 m21 ? ?"),
    Paper("MLA", _JUDGED, "md", _MLA, "m19 ol fhi wmo m21"),
]
