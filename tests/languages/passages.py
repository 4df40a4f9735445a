"""Short texts in many languages, written for these tests; cut into words by hand, by "|" where no space shows them."""

from __future__ import annotations

from typing import NamedTuple


class Sample(NamedTuple):
    """A language.

    Args:
        texts: their words are between spaces, or cut by "|".
        title: of a passage.
        mention: a sentence that names it.
    """

    texts: tuple[str, str, str]
    title: str
    mention: str

    def passages(self) -> list[str]:
        return [text.replace("|", "") for text in self.texts]

    def words(self) -> list[list[str]]:
        """The words of each text, without punctuation around them."""
        split = [text.replace(" ", "|").split("|") for text in self.texts]
        return [[bare for word in words if (bare := word.strip(".,。、।؟"))] for words in split]


SAMPLES = {
    "en": Sample(
        (
            "The keeper lights the lamp every evening.",
            "A wide river flows through the old town of AT&T and C++.",
            "She takes vitamin C in the morning.",
        ),
        "Lighthouse Bay",
        "Few ships call at Lighthouse Bay in winter.",
    ),
    "de": Sample(
        (
            "Der Wärter zündet jeden Abend die Lampe an.",
            "Ein breiter Fluss fließt durch die alte Stadt.",
            "Am Morgen trinkt sie auf der Straße süßen Tee.",
        ),
        "Müritz",
        "Viele Vögel rasten an der Müritz im Herbst.",
    ),
    "fr": Sample(
        (
            "Le gardien allume la lampe chaque soir.",
            "Un large fleuve traverse la vieille ville d'Orléans.",
            "Le matin, elle boit du thé à l'école.",
        ),
        "Loire",
        "Les bateaux descendent la Loire au printemps.",
    ),
    "fi": Sample(
        (
            "Vartija sytyttää lampun joka ilta.",
            "Leveä joki virtaa vanhan kaupungin läpi.",
            "Aamulla hän juo teetä maidon kanssa.",
        ),
        "Saimaa",
        "Kesällä vene ylittää järven nimeltä Saimaa hitaasti.",
    ),
    "ru": Sample(
        (
            "Смотритель зажигает лампу каждый вечер.",
            "Широкая река течёт через старый город.",
            "Утром она пьёт чай с молоком.",
        ),
        "Байкал",
        "Зимой озеро Байкал покрыто льдом.",
    ),
    "el": Sample(
        (
            "Ο φύλακας ανάβει τη λάμπα κάθε βράδυ.",
            "Ένα πλατύ ποτάμι διασχίζει την παλιά πόλη.",
            "Το πρωί πίνει τσάι με γάλα.",
        ),
        "Όλυμπος",
        "Τον χειμώνα ο Όλυμπος είναι χιονισμένος.",
    ),
    "tr": Sample(
        (
            "Bekçi her akşam lambayı yakar.",
            "Geniş bir ırmak eski şehrin içinden akar.",
            "Sabahları İzmir'de ılık süt içer.",
        ),
        "Van Gölü",
        "Kışın Van Gölü donmaz.",
    ),
    "ar": Sample(
        (
            "يشعل الحارس المصباح كل مساء.",
            "يجري نهر واسع عبر المدينة القديمة.",
            "تشرب الشاي مع الحليب في الصباح.",
        ),
        "بحيرة فيكتوريا",
        "تقع بحيرة فيكتوريا في قلب القارة.",
    ),
    "he": Sample(
        (
            "השומר מדליק את המנורה בכל ערב.",
            "נהר רחב זורם דרך העיר העתיקה.",
            "בבוקר היא שותה תה עם חלב.",
        ),
        "ים המלח",
        "בקיץ ים המלח חם מאוד.",
    ),
    "hi": Sample(
        (
            "पहरेदार हर शाम दीपक जलाता है।",
            "चौड़ी नदी पुराने शहर से होकर बहती है।",
            "वह सुबह दूध वाली चाय पीती है।",
        ),
        "चिल्का झील",
        "सर्दियों में चिल्का झील पर पक्षी आते हैं।",
    ),
    "th": Sample(
        (
            "คน|เฝ้า|ประภาคาร|จุด|ตะเกียง|ทุก|เย็น",
            "แม่น้ำ|กว้าง|ไหล|ผ่าน|เมือง|เก่า",
            "ตอน|เช้า|เธอ|ดื่ม|ชา|ใส่|นม",
        ),
        "ทะเลสาบสงขลา",
        "นกมากมายบินมาที่ทะเลสาบสงขลาในฤดูหนาว",
    ),
    "zh": Sample(
        (
            "守塔人|每天|晚上|点|灯|。",
            "宽阔|的|河|流过|古老|的|城市|。",
            "早上|她|喝|牛奶|茶|。",
        ),
        "青海湖",
        "夏天很多人骑车绕青海湖一圈。",
    ),
    "ja": Sample(
        (
            "番人|は|毎晩|ランプ|を|ともす|。",
            "広い|川|が|古い|町|を|流れる|。",
            "朝|、|彼女|は|お茶|を|飲む|。",
        ),
        "琵琶湖",
        "夏には多くの人が琵琶湖で泳ぐ。",
    ),
    "ko": Sample(
        (
            "등대지기|는 매일 저녁 등불|을 켠다.",
            "넓은 강|이 오래된 도시|를 지난다.",
            "아침|에 그녀|는 우유 차|를 마신다.",
        ),
        "소양호",
        "겨울에는 소양호에서 낚시를 한다.",
    ),
}
