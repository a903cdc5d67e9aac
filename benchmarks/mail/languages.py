"""Phrases of six languages, of which made-up mails have their sentences."""
# ruff: noqa: RUF001 - letters of other scripts are what they look like

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """What sentences of a language are made of: who does what, to what, where and when."""

    parts: tuple[tuple[str, ...], ...]
    end: str  # of a sentence
    blank: str  # between words
    greeting: str
    closing: str
    notice: tuple[str, str, str]  # a notice of a firm, before, between and behind what is new in it


def _cut(*lines: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(part.strip() for part in line.split("|")) for line in lines)


LANGUAGES = {
    "en": Language(
        _cut(
            "the committee | our engineer | a quiet neighbour | the harbour office | your old account | the "
            "night train "
            "| a new customer | the museum | the second supplier | every member | the garden club | an honest lawyer",
            "has finally prepared | will soon deliver | wants to check | could not open | sold without asking | "
            "repairs "
            "every spring | promised to send | forgot about | looks for | pays double for | carefully packed | "
            "returned",
            "the wooden chest | three sealed letters | a list of prices | the broken pump | twelve blue chairs | our "
            "signed contract | the winter timetable | a box of medals | the missing invoice | forty bottles of oil "
            "| the lost luggage | a small fortune",
            "behind the station | at the bank of the island | on the fourth floor | near the old mill | in the other "
            "building | under the bridge | at the fair in Leeds | beside the canal | in your own street | at sea",
            "before the moon is full | without any delay | until next Thursday | for the first time in years | as we "
            "agreed by phone | after a long winter | while prices still fall | if nobody objects | at half past seven",
        ),
        ".",
        " ",
        "Dear {name},",
        "Kind regards\n{name}",
        (
            "your order",
            "has left our warehouse and will arrive between",
            "If you are not at home, the driver leaves it "
            "with a neighbour or at the shop on the corner. You can choose another day or another place below. You get "
            "this message because the sender of the goods gave us your address for the delivery.",
        ),
    ),
    "de": Language(
        _cut(
            "der Ausschuss | unsere Technikerin | ein stiller Nachbar | das Hafenamt | Ihr altes Konto | der Nachtzug "
            "| eine neue Kundin | das Museum | der zweite Lieferant | jedes Mitglied | der Gartenverein | ein Anwalt",
            "hat endlich vorbereitet | liefert in Kürze | möchte gerne prüfen | konnte nicht öffnen | verkaufte "
            "ungefragt "
            "| repariert jedes Frühjahr | versprach uns | vergass beinahe | sucht noch immer | bezahlt doppelt",
            "die hölzerne Truhe | drei versiegelte Briefe | eine Liste der Preise | die defekte Pumpe | zwölf blaue "
            "Stühle | unseren Vertrag | den Fahrplan für den Winter | eine Kiste Medaillen | die fehlende Rechnung",
            "hinter dem Bahnhof | bei der Bank der Insel | im vierten Stock | an der alten Mühle | im anderen Gebäude "
            "| unter der Brücke | auf der Messe in Kassel | neben dem Kanal | in Ihrer Strasse | auf See",
            "noch vor dem Vollmond | ohne weitere Verzögerung | bis zum nächsten Donnerstag | zum ersten Mal "
            "seit Jahren "
            "| wie am Telefon besprochen | nach einem langen Winter | solange die Preise fallen | um halb acht",
        ),
        ".",
        " ",
        "Guten Tag {name},",
        "Viele Grüsse\n{name}",
        (
            "Ihre Bestellung",
            "hat unser Lager verlassen und trifft ein zwischen",
            "Falls Sie nicht zu Hause sind, gibt der "
            "Fahrer sie bei einem Nachbarn oder im Laden an der Ecke ab. Sie können unten einen anderen Tag oder einen "
            "anderen Ort wählen. Sie erhalten diese Nachricht, weil der Absender uns Ihre Adresse genannt hat, "
            "damit die "
            "Lieferung pünktlich ankommt und niemand warten muss.",
        ),
    ),
    "fr": Language(
        _cut(
            "le comité | notre technicienne | un voisin tranquille | la capitainerie | votre ancien compte | le "
            "train de "
            "nuit | une nouvelle cliente | le musée | le second fournisseur | chaque membre | le club | un avocat",
            "a enfin préparé | livrera bientôt | souhaite vérifier | ne pouvait ouvrir | a vendu sans demander "
            "| répare "
            "chaque printemps | a promis d'envoyer | avait oublié | cherche toujours | paie le double pour",
            "le coffre en bois | trois lettres scellées | une liste de prix | la pompe cassée | douze chaises bleues "
            "| notre contrat signé | l'horaire d'hiver | une boîte de médailles | la facture manquante | une fortune",
            "derrière la gare | à la banque de l'île | au quatrième étage | près du vieux moulin | dans l'autre "
            "bâtiment "
            "| sous le pont | à la foire de Lyon | le long du canal | dans votre rue | en pleine mer",
            "avant la pleine lune | sans aucun retard | jusqu'à jeudi prochain | pour la première fois depuis "
            "des années "
            "| comme convenu au téléphone | après un long hiver | tant que les prix baissent | à sept heures et demie",
        ),
        ".",
        " ",
        "Bonjour {name},",
        "Cordialement\n{name}",
        (
            "votre commande",
            "a quitté notre entrepôt et arrivera entre",
            "Si vous êtes absent, le chauffeur la laisse chez "
            "un voisin ou à la boutique du coin. Vous pouvez choisir ci-dessous un autre jour ou un autre lieu. Vous "
            "recevez ce message parce que l'expéditeur nous a donné votre adresse pour la livraison de vos achats.",
        ),
    ),
    "es": Language(
        _cut(
            "el comité | nuestra ingeniera | un vecino callado | la oficina del puerto | su cuenta antigua | el tren "
            "nocturno | una clienta nueva | el museo | el segundo proveedor | cada socio | el club | un abogado "
            "honesto",
            "por fin ha preparado | entregará pronto | quiere comprobar | no pudo abrir | vendió sin preguntar "
            "| repara "
            "cada primavera | prometió enviar | había olvidado | busca todavía | paga el doble por",
            "el cofre de madera | tres cartas selladas | una lista de precios | la bomba rota | doce sillas azules "
            "| nuestro contrato | el horario de invierno | una caja de medallas | la factura perdida | una fortuna",
            "detrás de la estación | en el banco de la isla | en el cuarto piso | cerca del viejo molino | en el otro "
            "edificio | bajo el puente | en la feria de Vigo | junto al canal | en su propia calle | en alta mar",
            "antes de la luna llena | sin más demora | hasta el próximo jueves | por primera vez en años | como "
            "acordamos por teléfono | después de un largo invierno | mientras bajan los precios | a las siete y media",
        ),
        ".",
        " ",
        "Hola {name},",
        "Saludos\n{name}",
        (
            "su pedido",
            "ha salido de nuestro almacén y llegará entre",
            "Si no está en casa, el conductor lo deja con un "
            "vecino o en la tienda de la esquina. Puede elegir abajo otro día u otro lugar. Recibe este mensaje "
            "porque el "
            "remitente nos dio su dirección para la entrega de la mercancía, que no queremos demorar.",
        ),
    ),
    "ru": Language(
        _cut(
            "комитет | наш инженер | тихий сосед | портовая служба | ваш старый счёт | ночной поезд | новая клиентка "
            "| музей | второй поставщик | каждый участник | садовый клуб | честный адвокат",
            "наконец подготовил | скоро доставит | хочет проверить | не смог открыть | продал без спроса | "
            "чинит каждую "
            "весну | обещал прислать | почти забыл | всё ещё ищет | платит вдвое за",
            "деревянный сундук | три запечатанных письма | список цен | сломанный насос | двенадцать синих стульев "
            "| подписанный договор | зимнее расписание | коробку медалей | потерянный счёт | небольшое состояние",
            "за вокзалом | в банке на острове | на четвёртом этаже | у старой мельницы | в другом здании | под мостом "
            "| на ярмарке в Твери | возле канала | на вашей улице | в открытом море",
            "до полной луны | без всякой задержки | до следующего четверга | впервые за много лет | как "
            "договорились по "
            "телефону | после долгой зимы | пока падают цены | в половине восьмого",
        ),
        ".",
        " ",
        "Здравствуйте, {name}!",
        "С уважением\n{name}",
        (
            "ваш заказ",
            "покинул наш склад и прибудет между",
            "Если вас нет дома, водитель оставит его у соседа или в "
            "магазине на углу. Ниже можно выбрать другой день или другое место. Вы получили это сообщение, потому что "
            "отправитель передал нам ваш адрес для доставки товара, и мы хотим, чтобы он прибыл вовремя и никто "
            "не ждал.",
        ),
    ),
    "zh": Language(
        _cut(
            "委员会 | 我们的工程师 | 安静的邻居 | 港口办公室 | 您的旧账户 | 夜间列车 | 一位新客户 | 博物馆 | "
            "第二家供应商 | 每位会员",
            "终于准备好了 | 很快就会送来 | 想要检查 | 没能打开 | 未经询问就卖掉了 | 每年春天修理 | 答应寄出 | "
            "几乎忘记了 | 还在寻找",
            "那只木箱 | 三封密封的信 | 一份价目表 | 坏掉的水泵 | 十二把蓝色椅子 | 签好的合同 | 冬季时刻表 | "
            "一盒奖章 | 遗失的发票",
            "在车站后面 | 在岛上的银行 | 在四楼 | 在老磨坊附近 | 在另一栋楼里 | 在桥下 | 在成都的展会上 | "
            "在运河旁边 | 在您的街上",
            "在满月之前 | 毫不拖延 | 直到下个星期四 | 多年来第一次 | 正如电话里约定的 | 在漫长的冬天之后 | "
            "趁价格还在下跌 | 七点半的时候",
        ),
        "。",
        "",
        "{name}您好！",
        "祝工作顺利\n{name}",
        (
            "您的订单",
            "已经离开我们的仓库，预计到达时间为",
            "如果您不在家，司机会把它交给邻居或街角的商店。您可以在下面选择另一天或另一个地点。"
            "您收到这封邮件，是因为寄件人为了送货把您的地址告诉了我们。请不要直接回复这封邮件，"
            "因为没有人查看这个邮箱。",
        ),
    ),
}
