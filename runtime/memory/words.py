# ruff: noqa: E501, RUF001, SIM905 - lists of words in several scripts read best as running text
"""Words that say little: function words are no query at all, everyday working words count a third.

They stand as `tokens` folds them: lower case, without accents.
"""

from typing import Final

__all__ = ["ALIASES", "EVERYDAY", "FUNCTION_WORDS", "GRAMMAR_CHARACTERS", "GRAMMAR_GRAMS"]

FUNCTION_WORDS: Final = {
    "english": frozenset(
        "a about after again all also am an and any anyone anybody anything are arent as at away be because been before "
        "being below between both but by can cannot cant could couldnt did didnt do does doesnt doing done dont down "
        "during each either else ever every everyone few for from further get gets getting goes going gone got had hadnt "
        "has hasnt have havent having he her here heres hers herself him himself his how hows however i if im in into is "
        "isnt it its itself ive just let lets like may maybe me might more most much must my myself neither no nor not "
        "now of off ok okay on once one ones only onto or other our ours ourselves out over own per perhaps please quite "
        "rather really same shall she should shouldnt since so some someone something such than thank thanks that thats "
        "the their theirs them themselves then there theres these they theyre theyve this those through thus to too until "
        "up upon us very via want wants was wasnt we weve were werent what whats when whens where wheres whether which "
        "while who whom whos whose why will with within without wont would wouldnt yes yet you your youre yours yourself "
        "yourselves youve".split()
    ),
    "german": frozenset(
        "ab aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da "
        "dafur damit danach dann daran darauf darf darin das dass davon dazu dein deine dem den denn der des deren dessen "
        "deshalb dich die dies diese diesem diesen dieser dieses dir doch dort du durch durfen ein eine einem einen einer "
        "eines er erst es etwa etwas euch euer fur gab gegen geht genau gibt habe haben hat hatte hatten hier hin ich ihm "
        "ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jedem jeden jeder jedes jemand jetzt kann kannst "
        "kein keine keinem keinen keiner konnen konnte lasst man mal mehr mein meine meinem meinen mich mir mit muss "
        "mussen musste nach neben nein nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner "
        "seit sich sie sind so soll sollen sollte solche sondern sonst uber um und uns unser unsere unserem unseren unter "
        "viel viele vom von vor wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer "
        "werde werden wessen wie wieder wird wir wo wofur woher wohin womit wozu wurde wurden wurde zu zum zur zwischen".split()
    ),
    "french": frozenset(
        "a ai alors apres as au aucun aucune aussi autre autres aux avait avant avec avez avoir avons bien car ce ceci "
        "cela celle celui ces cet cette chez comme comment dans de depuis des donc dont du elle elles en encore entre es "
        "est et etait etc ete etes etre eu eux faut font il ils j je jusqu l la le les leur leurs lors lui m ma mais me "
        "meme mes moi moins mon n ne ni nos notre nous on ont ou par pas peu peut peuvent plus pour pourquoi qu quand "
        "que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous sur t ta te tes toi ton tous tout "
        "toute toutes tres tu un une va vers voici vos votre vous y".split()
    ),
    "spanish": frozenset(
        "a al algo alguien algun alguna ante antes asi aun aunque bajo cada como con contra cual cuales cuando cuanta "
        "cuantas cuanto cuantos de debe deben debo del desde despues donde dos durante e el ella ellas ellos en entre era "
        "es esa esas ese eso esos esta estan estar estas este esto estos fue ha hacia han hasta hay he la las le les lo "
        "los mas me mi mientras mis muy nada ni no nos nosotros nuestra nuestro o otra otras otro otros para pero poco por "
        "porque pueda puede pueden puedo que quien quienes se sea segun ser si sido sin sobre solo son su sus tal tambien "
        "tan tanto te tiene tienen toda todas todo todos tras tu un una unas uno unos y ya yo".split()
    ),
    "portuguese": frozenset(
        "a ainda alem algo alguem ao aos apos aquela aquele as ate cada com como da das de dela dele depois desde deve "
        "devem do dos e ela elas ele eles em entre era essa essas esse esses esta estao estas este estes eu foi ha isso "
        "isto ja lhe mais mas me mesmo meu meus minha muito na nao nas nem no nos nossa nosso num numa o onde os ou para "
        "pela pelas pelo pelos pode podem por porque posso qual quais quando quanta quantas quanto quantos que quem sao se "
        "seja sem ser seu seus sim so sob sobre sua suas tambem tem tenho ter todas todo todos um uma umas uns voce voces".split()
    ),
    "italian": frozenset(
        "a abbiamo ai al alla alle allo agli anche ancora avere c che chi ci come con cosa cui da dal dalla dalle dallo "
        "dai dagli de dei degli del dell della delle dello deve devono di dopo dove due e ed era essere fa fra gia gli ha "
        "hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mio molto ne negli nei nel nell nella nelle nello "
        "no noi non nostra nostro o ogni oppure per perche piu poi prima puo qual quale quali quando quanta quante quanti "
        "quanto quel quella quelle quelli quello questa queste questi questo qui se sei senza si sia solo sono sta su sua "
        "sue sugli sui sul sulla sulle suo tra tu tua tuo tutta tutte tutti tutto un una uno vi voi".split()
    ),
    "dutch": frozenset(
        "aan af al alle als bij dan dat de den der deze die dit door dus een en er geen had hebben heb heeft het hij hoe "
        "hun ik in is je jij jullie kan kunnen maar me meer met mij mijn moet moeten na naar niet nog nu of om omdat onder "
        "ons onze ook op over te tegen ten ter tot uit van veel voor waar waarom wanneer was wat we wel welk welke werd "
        "wie wij wil worden wordt zal ze zich zij zijn zo zou".split()
    ),
    "russian": frozenset(
        "а без бы был была были было быть в вам вами вас ваш ваша ваши вместо во вот все всего всех всю вся вы где да для "
        "до его ее ей ему если есть еще же за здесь и из или им их к как какая какие какого какой какую ко когда кого кому "
        "который которая которое которые кто куда ли либо лишь между меня мне может можно мой моя мы на над надо нам нас "
        "наш наша наше наши не него нее нельзя нет ни них но ну нужен нужна нужно нужны о об один одна однако он она они "
        "оно от откуда очень по под после потом потому почему при про с со свой свои себя сейчас сколько так также такой "
        "там тебя тем то того тоже только том тот ты у уже хотя чего чей чем через что чтобы эта эти это этого этой этом "
        "этот эту я".split()
    ),
    "greek": frozenset(
        "α αλλα αν απο αυτα αυτη αυτο αυτος αυτοι για γιατι δε δεν εαν ειναι ειμαι εκει εμεις ενα ενας ενω εξω επι εδω η "
        "ηταν θα και καθε κανει κατα κατω κι μα μας με μεσα μετα μεχρι μη μην μια μου μπορει μπορω να ο οι ομως οπου οποια "
        "οποιο οποιος οταν οτι ουτε οχι πανω παρα ποια ποιο ποιοι ποιος ποιους ποιων ποσα ποσες ποσο ποσοι ποσος ποτε που "
        "πρεπει πριν προς πρωτα πως σαν σας σε σου στα στη στην στις στο στον στους στων τα τι τις την της το τον του τους "
        "των τη χωρις ως ωστε υπαρχει εχει εχουν εχω".split()
    ),
    "arabic": frozenset(
        "في من على الى إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن انا أنا انت أنت كان كانت يكون تكون ما ماذا "
        "متى أين اين كيف كم لماذا هل أي اي أية لا لم لن ليس ليست قد لقد أو او ثم بل حتى إذا اذا إن ان أن كل بعض بعد قبل "
        "عند عندما بين غير فقط أما اما كما منذ خلال حول تحت فوق لدى لدينا يجب يمكن يتم تم و ف ب ل ك لكن نفس هناك هنا من "
        "به بها فيه فيها له لها منه منها عليه عليها".split()
    ),
}
"""Per language; the first six are also how the language of a text in Latin letters is guessed."""

EVERYDAY: Final = {
    "english": frozenset(
        "able actual add ahead allow already always answer ask available back bad best better big bit bring broken bug build "
        "bye call case cause change check code come common continue correct create current data day deal detail difference different "
        "easy edit end error everything exact example exist expect explain fail feature file find fine first fix follow "
        "found function general give go good great guide happen hard hello help hey hi idea implement important improve include info "
        "information instead issue keep kind know last later latest leave left line list little long look lot make many "
        "matter mean method need never new next nothing number old open option order part people person place point "
        "possible problem proceed project provide put question quick read ready reason recent related remember remove repo "
        "repository result return right run say second see seem set setup show simple small sorry sort stuff start step still "
        "stop sure system take talk tell test text thing think time today together tomorrow tool top true try turn type "
        "understand update use used user usual value way week well word work write wrong year yesterday".split()
    ),
    "german": frozenset(
        "andern anderung arbeiten beispiel bitte brauche brauchen datei erklare erklaren fehler finde finden frage fragen "
        "funktioniert geben gehen gemacht grund helfen hilfe jahr kommen kommt lange lassen liegt mach machen macht neu "
        "neue neuen nutzen problem sagen schreib schreiben sehen seite stehen steht suchen tag tage teil text uhr wert "
        "wissen woche wort zeig zeigen zeit".split()
    ),
    "french": frozenset(
        "ajouter an annee besoin changer chercher chose dire erreur exemple expliquer explique faire fait fichier heure "
        "heures jour jours marche mettre montrer montre nouveau nouvelle probleme question savoir semaine temps texte "
        "trouver utiliser veux voir".split()
    ),
    "spanish": frozenset(
        "ano archivo ayuda buscar cambiar cosa decir dia dias ejemplo error escribir explica explicar hace hacer hora horas "
        "muestra necesito nueva nuevo poner problema pregunta quiero saber semana texto tiempo usar ver".split()
    ),
    "portuguese": frozenset(
        "ajuda ano arquivo coisa dia dias dizer erro exemplo explica fazer hora horas mostra mudar nova novo pergunta "
        "preciso problema quero saber semana tempo texto usar ver".split()
    ),
    "italian": frozenset(
        "aiuto anno bisogno cambiare cosa dire domanda errore esempio fare giorni giorno mostra nuova nuovo ora ore "
        "problema sapere scrivere settimana spiega tempo testo usare vedere voglio".split()
    ),
    "dutch": frozenset("bestand doen fout gebruiken maken nieuw probleem tijd vraag werken werkt zien".split()),
    "russian": frozenset(
        "время вопрос год день дела делать добавить дней знать изменить найти написать новый новая новые объясни ошибка "
        "покажи показать помоги пример проблема работает работать сделать скажи слово текст файл час часов".split()
    ),
    "greek": frozenset(
        "αρχειο βοηθεια δουλευει ερωτηση ημερα ημερες κανω λαθος μερα νεο νεα παραδειγμα προβλημα ωρα ωρες".split()
    ),
    "arabic": frozenset("ملف خطأ مشكلة سؤال يوم وقت مثال جديد جديدة عمل".split()),
}
GRAMMAR_GRAMS: Final = frozenset(
    # Chinese: pronouns, particles, question words and what straddles them
    "什么 怎么 么样 我们 你们 他们 她们 它们 这个 那个 哪个 这些 那些 哪些 一个 一下 一些 如何 可以 是否 是不 不是 没有 有没 "
    "为什 是什 怎样 请问 请帮 帮我 给我 告诉 诉我 我想 想要 需要 应该 现在 今天 已经 还是 或者 以及 因为 所以 但是 如果 的时 "
    "时候 的是 是的 了吗 一次 哪里 多少 几个 "
    # Japanese: the written forms of the same
    "です ます した して する ある いる から まで こと もの この その どの あの これ それ どれ ここ そこ どこ ない たい "
    "でし まし のは のが のを には では とは とき なに どう うや やっ って てい いま ので のに なぜ です すか ます せん くだ ださ "
    "さい "
    # Korean endings and question words
    "니다 습니 입니 합니 하는 에서 으로 어떻 떻게 무엇 우리 이것 저것 그것 하고 인가 나요 어요 세요 까요 "
    # Thai words of three characters that are grammar, and what longer ones begin with
    "และ ของ ที่ ให้ ได้ ไม่ แล้ ล้ว ต้อ ้อง เป็ ป็น อยู ยู่ หรื รือ อะไ ะไร ไหน ใคร เมื มื่ ื่อ ทำไ ำไม อย่ ย่า ่าง เท่ ท่า ่าไ "
    "าไร กี่ จะ ถ้า นี้ นั้ ั้น กับ จาก เรา ครั รับ ค่ะ คะ".split()
)

GRAMMAR_CHARACTERS: Final = frozenset("的了吗呢吧啊们么这那哪我你他她它很就也都和与或在是不没把被给从让请还已着")
"""Chinese characters that are grammar: a pair with one of them (or with hiragana) says little, for it parts words."""

ALIASES: Final = {"golang": "go", "kubernetes": "k8s", "postgresql": "postgres"}
"""Spellings under which one thing goes in queries and notes alike."""
