# ruff: noqa: E501, RUF001, SIM905 - lists of words in several scripts read best as running text
"""Words that say little: function words are no query at all, everyday working words count a third."""

from typing import Final

__all__ = ["EVERYDAY", "FUNCTION_WORDS", "GRAMMAR_BIGRAMS"]

FUNCTION_WORDS: Final = frozenset(
    # English
    "a about after again all also am an and any are arent as at be because been before being below between both but by "
    "can cannot cant could couldnt did didnt do does doesnt doing dont down during each either else ever every few for "
    "from further get gets getting got had hadnt has hasnt have havent having he hed her here heres hers herself hes "
    "him himself his how hows however i id if ill im in into is isnt it its itself ive just let lets like may maybe me "
    "might more most much must my myself neither no nor not now of off ok okay on once one only onto or other our ours "
    "ourselves out over own per perhaps please quite rather really same shall she shes should shouldnt since so some "
    "such than thank thanks that thats the their theirs them themselves then there theres these they theyre theyve "
    "this those through thus to too until up upon us very via was wasnt we weve were werent what whats when whens where "
    "wheres whether which while who whom whos whose why will with within without wont would wouldnt yes yet you youd "
    "youll your youre yours yourself yourselves youve "
    # German
    "aber als auch auf aus bei bin bis bist das dass dein dem den der des die dies diese dieser dieses doch du ein eine "
    "einem einen einer eines er es fur für habe haben hat ich ihr im ist ja kann kein keine man mein mich mir mit nach "
    "nicht noch nur oder ob sein sich sie sind uber über um und uns unser unsere vom von vor war warum was weil wenn "
    "wer werden wie wir wird wo wozu zu zum zur "
    # French
    "au aux avec ce ces cette dans de des du elle en est et eux il ils je la le les leur lui ma mais mes moi mon ne nos "
    "notre nous ou où par pas pour qu que qui sa sans se ses son sont sur ta te tes toi ton tu un une vos votre vous "
    "quel quelle quels quelles comment pourquoi quand est-ce "
    # Spanish
    "al como con cual cuando cuál cómo cuándo del donde dónde el ella ellos es esta este esto está hay las lo los más "
    "me mi mis muy nos para pero por porque que quien quién qué se ser sin sobre son su sus también tu una unos unas y "
    "ya "
    # Portuguese and Italian
    "ao aos com da das do dos ela ele em essa esse isso não nas nem nossa nosso os ou para pela pelo por qual quando "
    "quem se sua são uma che chi come cosa dei del della delle di dove gli il nel non per perché più quale questo sono "
    # Russian
    "а без бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть же за и из или им "
    "их к как какой какая какие когда кто ли мне мы на над не него нет но о об он она они от по под при с со так такой "
    "там то того только у уже что чтобы чем эта эти это я".split()
)

EVERYDAY: Final = frozenset(
    "able actual add allow already always answer anything ask available back bad best better big bit bring broken bug "
    "build call case cause change check code come common correct create current data day deal detail difference "
    "different does doing done easy edit end error everything exact example exist expect explain fail feature file "
    "find fine first fix follow found function general give go going good great guide happen hard help idea implement "
    "important improve include info information instead issue keep kind know last later latest leave left line list "
    "little long look lot make many matter mean method need never new next nothing number old open option order part "
    "people person place point possible problem project provide put question quick read ready reason recent related "
    "remember remove repo repository result return right run say second see seem set setup show simple small something "
    "sort stuff start step still stop sure system take talk tell test text thing think time today together tomorrow "
    "tool top true try turn type understand update use used user usual value want way week well word work write wrong "
    "year yesterday "
    "datei fehler machen mach ändern neu zeigen zeig bitte fichier faire archivo hacer".split()
)

GRAMMAR_BIGRAMS: Final = frozenset(
    # Chinese: pronouns, particles, question words and what straddles them
    "什么 怎么 么样 我们 你们 他们 她们 它们 这个 那个 哪个 这些 那些 哪些 一个 一下 一些 如何 可以 是否 是不 不是 没有 有没 "
    "为什 是什 怎样 请问 请帮 帮我 给我 告诉 诉我 我想 想要 需要 应该 现在 今天 已经 还是 或者 以及 因为 所以 但是 如果 的时 "
    "时候 的是 是的 了吗 一次 哪里 多少 几个 "
    # Japanese: the written forms of the same
    "です ます した して する ある いる から まで こと もの この その どの あの これ それ どれ ここ そこ どこ ない たい "
    "でし まし のは のが のを には では とは とき なに どう うや やっ って てい いま ので のに なぜ です すか ます せん くだ ださ "
    "さい "
    # Korean endings and question words
    "니다 습니 입니 합니 하는 에서 으로 어떻 떻게 무엇 우리 이것 저것 그것 하고 인가 나요 어요 세요 까요".split()
)
