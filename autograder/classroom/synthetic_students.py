"""Invents students for a synthetic class: names, ids, addresses at example.edu."""

import random
import unicodedata

from autograder.batch.batch_records import Student

GIVEN = """
Ada Aisha Alan Amara Anders Ángel Anh Aroha Ayşe Beatriz Bjørn Bogdan Cai Carmen Chidi Chloé Daniel
Dario Deepa Dilnoza Ebba Elif Emeka Esther Fatima Feng Fiona Gabriel Grace Hana Hassan Ilse Imani
Ines Ivan Jack Jasmin João Jun Kaito Kamala Keanu Kofi Lars Leila Liam Ling Łucja Magnus Maja Malik
Mei Mina Moana Nadia Naoki Ngozi Noor Olga Omar Paolo Priya Quinn Rafael Rania Rosa Ruth Sam Sanjay
Sofía Søren Tariq Thandi Tomás Ulla Uri Valentina Vikram Wei Xenia Yara Yusuf Zeynep Zoë
"""
FAMILY = """
Abe Acheampong Ahmed Alvarez Andersson Antonova Baker Bauer Becker Bianchi Bose Castillo Chen Costa
D'Angelo Dang Dlamini Dubois Eriksen Farah Fischer Flores Fujita García Gupta Hansen Haddad Hughes
Ibrahim Iyer Jensen Johansson Kaplan Khan Kim Kowalski Lefèvre Lopez Mahlangu Martins Mbeki Molina
Moreau Müller Murphy Nakamura Nguyễn Novák O'Brien Okafor Olsen Osei Park Patel Pereira Petrov
Quispe Rahman Rossi Sato Schmidt Silva Singh Smith Šimić Tanaka Taylor Tran Usman Vargas Virtanen
Walker Wang Weber Wójcik Yamamoto Yilmaz Zhang Zhou
"""
WITHOUT_NUMBER = 0.01  # of the students: enrolled late, not yet in the registrar's list


def invent_students(count: int, rng: random.Random) -> list[Student]:
    """So many students. Some have the same name, as in life; numbers and addresses differ."""
    students = []
    given, family = GIVEN.split(), FAMILY.split()
    numbers = rng.sample(range(10_000_000, 99_999_999), count)
    taken: dict[str, int] = {}
    for number in numbers:
        name = f"{rng.choice(given)} {rng.choice(family)}"
        address = plain(name)
        taken[address] = taken.get(address, 0) + 1
        suffix = str(taken[address]) if taken[address] > 1 else ""
        sid = "" if rng.random() < WITHOUT_NUMBER else str(number)
        students.append(Student(name, sid, f"{address}{suffix}@example.edu"))
    return students


def plain(name: str) -> str:
    """A name as an address spells it: ana.garcia."""
    spelled = name.translate(str.maketrans("łŁøØıđ", "lLoOid")).lower().replace(" ", ".")
    letters = unicodedata.normalize("NFD", spelled)
    return "".join(letter for letter in letters if letter.isascii() and letter not in "'")
